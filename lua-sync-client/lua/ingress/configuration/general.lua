-- /configuration/general: one text that NGINX keeps for whoever asks.

local reply = require("ingress.configuration.reply")
local request = require("ingress.configuration.request")

local KEY = "general"

local _M = {}

function _M.GET()
  return reply.raw(ngx.HTTP_OK, "text/plain", ngx.shared.configuration_data:get(KEY) or "nil")
end

function _M.POST()
  local body, err = request.body()
  if not body then
    return reply.text(ngx.HTTP_BAD_REQUEST, err)
  end
  local ok
  ok, err = ngx.shared.configuration_data:safe_set(KEY, body)
  if not ok then
    return reply.text(ngx.HTTP_INTERNAL_SERVER_ERROR, "storing the body: " .. err)
  end
  return reply.created()
end

return _M
