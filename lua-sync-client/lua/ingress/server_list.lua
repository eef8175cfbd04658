-- Certificates and the server names they belong to, in the shared dictionaries: adding, replacing, removing.
--
-- All functions but `pem_for_host` must run under `ingress.write_lock`.

local servers = require("ingress.servers")
local transaction = require("ingress.transaction")

local ipairs = ipairs
local pairs = pairs

-- The uid that means "this host has no certificate".
local NO_CERTIFICATE = "-1"

local certificates = servers.certificates
local hosts = servers.hosts

local _M = {}

local function put_changed(changes, store, values)
  for id, text in pairs(values) do
    if text ~= NO_CERTIFICATE and store:read(id) ~= text then
      changes:put(store, id, text)
    end
  end
end

local function remove_absent(changes, store, values)
  for _, id in ipairs(store:ids()) do
    if not values[id] then
      changes:remove(store, id)
    end
  end
end

-- Applies an update: { certificates = uid → PEM, servers = host → uid, remove_servers = hosts, remove_certificates =
-- uids, replace = whether all others are removed, base, revision }. Returns true; or nil and a table with `conflict`
-- (the current revision) or that of a failed commit.
function _M.patch(update)
  local current = certificates:revision()
  if update.base and update.base ~= current then
    return nil, { conflict = current }
  end
  local changes = transaction.new()
  -- A host must never point at a certificate that is not there yet, or no longer.
  put_changed(changes, certificates, update.certificates)
  put_changed(changes, hosts, update.servers)
  for host, uid in pairs(update.servers) do
    if uid == NO_CERTIFICATE then
      changes:remove(hosts, host)
    end
  end
  for _, host in ipairs(update.remove_servers) do
    changes:remove(hosts, host)
  end
  if update.replace then
    remove_absent(changes, hosts, update.servers)
  end
  for _, uid in ipairs(update.remove_certificates) do
    changes:remove(certificates, uid)
  end
  if update.replace then
    remove_absent(changes, certificates, update.certificates)
  end
  changes:set_revision(certificates, update.revision)
  return changes:commit()
end

local function update_of(certificate, server, revision)
  return {
    certificates = certificate, servers = server, remove_servers = {}, remove_certificates = {}, revision = revision,
  }
end

-- The classic update: as a whole if there is room, otherwise whatever fits. Returns true; or nil and the failure of
-- the whole.
function _M.add(new_certificates, new_servers, revision)
  local ok, failure = _M.patch(update_of(new_certificates, new_servers, revision))
  if ok then
    return true
  end
  for uid, pem in pairs(new_certificates) do
    _M.patch(update_of({ [uid] = pem }, {}, 0))
  end
  for host, uid in pairs(new_servers) do
    _M.patch(update_of({}, { [host] = uid }, 0))
  end
  return nil, failure
end

-- The PEM text of the certificate of exactly this host; nil when it has none.
function _M.pem_for_host(host)
  local uid = servers.uid(host)
  return uid and (servers.pem(uid)) or nil
end

return _M
