-- Access phase: asks a service whether a request may pass, by a subrequest that has variables of its own. Where it may
-- share those of the request, NGINX's auth_request does the same.
--
-- The location names the subrequest's location in $external_auth_path, and in $external_auth_headers the headers of the
-- answer that endpoints get, with commas between; their values go to $auth_header_0, $auth_header_1 and so on.

local capture = ngx.location.capture
local gmatch = string.gmatch
local var = ngx.var

local _M = {}

-- The first value of a header, or the empty text.
local function first(value)
  if type(value) == "table" then
    value = value[1]
  end
  return value or ""
end

-- access_by_lua
function _M.ask()
  local answer = capture(var.external_auth_path, { method = ngx.HTTP_GET })
  local status, header = answer.status, answer.header
  var.auth_cookie = first(header["Set-Cookie"])
  if status >= 200 and status < 300 then
    local index = 0
    for name in gmatch(var.external_auth_headers or "", "[^,]+") do
      var["auth_header_" .. index] = first(header[name])
      index = index + 1
    end
    return ngx.exit(ngx.OK)
  end
  if status == ngx.HTTP_UNAUTHORIZED then
    ngx.header["WWW-Authenticate"] = header["WWW-Authenticate"]
    return ngx.exit(status)
  elseif status == ngx.HTTP_FORBIDDEN then
    return ngx.exit(status)
  end
  ngx.log(ngx.ERR, "the service that decides about requests answered ", status)
  return ngx.exit(ngx.HTTP_INTERNAL_SERVER_ERROR)
end

return _M
