-- Which certificate belongs to which server name, as the controller last said.

local small_store = require("ingress.small_store")
local store = require("ingress.store")

local sub = string.sub
local find = string.find

local _M = {
  -- uid → PEM text
  certificates = store.open("certificate_data"),
  -- host name → uid
  hosts = small_store.open("certificate_servers"),
}

local hosts = _M.hosts
local certificates = _M.certificates

-- The uid of exactly this host; nil when it has none.
function _M.uid(host)
  return hosts:read(host)
end

-- The uid for a server name (lower case, no final dot): the exact host, else the wildcard over its first label.
function _M.uid_for_name(name)
  local uid = hosts:read(name)
  if uid then
    return uid
  end
  local dot = find(name, ".", 2, true)
  return dot and hosts:read("*" .. sub(name, dot)) or nil
end

-- The PEM text and generation of a certificate; nil when it is unknown.
function _M.pem(uid)
  return certificates:read(uid)
end

function _M.generation(uid)
  return certificates:generation(uid)
end

return _M
