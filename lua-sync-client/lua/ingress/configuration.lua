-- The HTTP interface of the status port, by which the controller tells NGINX what changes without a reload.

local backend_list = require("ingress.backend_list")
local backends = require("ingress.configuration.backends")
local general = require("ingress.configuration.general")
local reply = require("ingress.configuration.reply")
local revision = require("ingress.configuration.revision")
local servers = require("ingress.configuration.servers")

local find = string.find
local lower = string.lower

-- Matched on the URI as it was sent: a query string makes it another one.
local RESOURCES = {
  ["/configuration/backends"] = backends,
  ["/configuration/general"] = general,
  ["/configuration/revision"] = revision,
  ["/configuration/servers"] = servers,
}
-- Matched on the normalised path, since it takes a query string.
local CERTIFICATES = "/configuration/certs"

local _M = {}

-- A web page can make a browser send requests here by a name that it points at 127.0.0.1; such requests carry that
-- name in Host.
local function is_local(host)
  if not host then
    return true
  end
  host = lower(host)
  return find(host, "^127%.%d+%.%d+%.%d+$") or find(host, "^127%.%d+%.%d+%.%d+:%d+$")
    or find(host, "^localhost$") or find(host, "^localhost:%d+$")
    or find(host, "^%[::1%]$") or find(host, "^%[::1%]:%d+$")
end

-- Who writes an Ingress may name this address as the target of a mirror or as its authenticating service, also by a name
-- or a variable that only a request resolves. What NGINX itself asks there carries this header, whatever the client sent.
local function is_relayed()
  return ngx.var.http_x_sent_from ~= nil
end

-- content_by_lua of the location /configuration
function _M.call()
  if is_relayed() or not is_local(ngx.var.http_host) then
    return reply.text(ngx.HTTP_FORBIDDEN, "this address is for local use")
  end
  local method = ngx.req.get_method()
  local resource = RESOURCES[ngx.var.request_uri]
  if not resource and ngx.var.uri == CERTIFICATES then
    resource = servers.by_host
  end
  local handler = resource and resource[method]
  if handler then
    return handler()
  elseif resource or (method ~= "GET" and method ~= "POST") then
    return reply.text(ngx.HTTP_BAD_REQUEST, "method not supported")
  end
  return reply.text(ngx.HTTP_NOT_FOUND, "not found")
end

-- content_by_lua of the location /is-dynamic-lb-initialized
function _M.initialized()
  if not backend_list.known() then
    return ngx.exit(ngx.HTTP_INTERNAL_SERVER_ERROR)
  end
  return reply.text(ngx.HTTP_OK, "OK")
end

return _M
