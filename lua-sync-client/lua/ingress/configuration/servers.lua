-- /configuration/servers and /configuration/certs: certificates by server name.

local cjson = require("cjson")
local reply = require("ingress.configuration.reply")
local request = require("ingress.configuration.request")
local server_list = require("ingress.server_list")
local write_lock = require("ingress.write_lock")

local pcall = pcall
local type = type

local _M = {}

function _M.GET()
  return reply.text(ngx.HTTP_BAD_REQUEST, "only POST and PATCH are supported")
end

-- Checks the members of `document` that `names` gives the kind of. Returns them; or nil and an error.
local function members_of(document, names)
  local members = {}
  for name, kind in pairs(names) do
    local err
    members[name], err = request[kind](document, name)
    if not members[name] then
      return nil, err
    end
  end
  return members
end

function _M.POST()
  local body, err = request.body()
  local revision, document, ok
  if body then
    revision, err = request.revision_header()
  end
  if revision then
    ok, document = pcall(cjson.decode, body)
    if not ok or type(document) ~= "table" then
      document, err = nil, "the body is not a JSON object"
    end
  end
  local members
  if document then
    members, err = members_of(document, { certificates = "object_member", servers = "object_member" })
  end
  if not members then
    return reply.text(ngx.HTTP_BAD_REQUEST, err)
  end
  local added, failure = write_lock.with(server_list.add, members.certificates, members.servers, revision)
  if not added then
    return reply.failure(failure, ngx.HTTP_INTERNAL_SERVER_ERROR)
  end
  return reply.created()
end

function _M.PATCH()
  local document, err = request.patch()
  if not document then
    return reply.text(ngx.HTTP_BAD_REQUEST, err)
  end
  local update
  update, err = members_of(document, {
    certificates = "object_member",
    servers = "object_member",
    remove_servers = "strings_member",
    remove_certificates = "strings_member",
  })
  if not update then
    return reply.text(ngx.HTTP_BAD_REQUEST, err)
  end
  update.base, update.revision, update.replace = document.base, document.revision, document.replace == true
  local ok, failure = write_lock.with(server_list.patch, update)
  if not ok then
    return reply.failure(failure)
  end
  return reply.revision(ngx.HTTP_OK, document.revision)
end

-- /configuration/certs?hostname=…
_M.by_host = {
  GET = function()
    local host = ngx.req.get_uri_args().hostname
    if type(host) ~= "string" or host == "" then
      return reply.text(ngx.HTTP_BAD_REQUEST, "the parameter hostname is missing")
    end
    local pem = server_list.pem_for_host(host)
    if not pem then
      return reply.text(ngx.HTTP_NOT_FOUND, "no certificate for this host")
    end
    return reply.raw(ngx.HTTP_OK, "text/plain", pem)
  end,
}

return _M
