-- The cookie that keeps a client on its peer: read from requests, and written into responses.
--
-- Its value is "<key>|<backend key>": the first says which peer, the second which backend gave it out.

local cookie_time = ngx.cookie_time
local concat = table.concat
local find = string.find
local floor = math.floor
local format = string.format
local gsub = string.gsub
local match = string.match
local sub = string.sub
local time = ngx.time
local type = type
local var = ngx.var

local DEFAULT_NAME = "route"
local HEADER = "Set-Cookie"
local SAME_SITE = { None = true, Lax = true, Strict = true }

local _M = {}
local meta = { __index = _M }

-- What may stand in an attribute (RFC 6265, av-octet).
local function attribute(value)
  return type(value) == "string" and value ~= "" and not find(value, "[%c;]") and value or nil
end

local function seconds(value)
  local number = tonumber(value)
  return number and floor(number)
end

-- Host → path → true.
local function places(locations)
  local hosts = {}
  for host, paths in pairs(type(locations) == "table" and locations or {}) do
    hosts[host] = {}
    for _, path in ipairs(type(paths) == "table" and paths or {}) do
      hosts[host][path] = true
    end
  end
  return hosts
end

-- The cookie that a backend's `sessionAffinityConfig` describes.
function _M.new(affinity)
  affinity = type(affinity) == "table" and affinity.cookieSessionAffinity
  local spec = type(affinity) == "table" and affinity or {}
  local name = attribute(spec.name) or DEFAULT_NAME
  return setmetatable({
    name = name,
    variable = "cookie_" .. name:lower(),
    places = places(spec.locations),
    expires = seconds(spec.expires),
    max_age = seconds(spec.maxage),
    domain = attribute(spec.domain),
    path = attribute(spec.path),
    secure = spec.secure == true,
    same_site = SAME_SITE[spec.samesite] and spec.samesite or nil,
    conditional = spec.conditional_samesite_none == true,
    change_on_failure = spec.change_on_failure == true,
  }, meta)
end

-- Browsers that take SameSite=None for Strict, or refuse the cookie.
local function misreads_none(agent)
  if not agent then
    return false
  end
  local function has(text)
    return find(agent, text, 1, true)
  end
  return has("Chrome/4") or has("Chrome/5") or has("Chrome/6")
    or has("CPU iPhone OS 12") or has("iPad; CPU OS 12")
    or (has("Macintosh") and has("Intel Mac OS X 10_14") and has("Safari") and not has("Chrome"))
end

-- The text of Set-Cookie. `request` has the location's path, whether it came by TLS, and the User-Agent.
function _M:text(value, request)
  local parts = { self.name .. "=" .. value }
  local function add(text)
    parts[#parts + 1] = text
  end
  if self.expires then
    add("Expires=" .. cookie_time(time() + self.expires))
  end
  if self.max_age then
    add(format("Max-Age=%d", self.max_age))
  end
  if self.domain then
    add("Domain=" .. self.domain)
  end
  local path = self.path or attribute(request.path)
  if path then
    add("Path=" .. path)
  end
  if self.secure or request.https then
    add("Secure")
  end
  add("HttpOnly")
  local same_site = self.same_site
  if same_site and not (same_site == "None" and self.conditional and misreads_none(request.agent)) then
    add("SameSite=" .. same_site)
  end
  return concat(parts, "; ")
end

-- Whether the cookie may be set at the location `path` of `host`; a host that is not known by itself may be by its
-- wildcard.
function _M:belongs(host, path)
  local paths = self.places[host] or self.places[gsub(host, "^[^.]+", "*", 1)]
  return paths ~= nil and paths[path] == true
end

-- The key and the backend key that the request brought; nil for what it did not bring.
function _M:read()
  local value = var[self.variable]
  if value then
    return match(value, "^|*([^|]+)|*([^|]*)")
  end
  return nil
end

-- Sets the cookie in the response, in place of what an earlier attempt of this request set, unless the location is not
-- one of the cookie's.
function _M:write(value)
  local path = var.location_path
  local host = var.server_name == "_" and "_" or var.host
  if not path or not host or not self:belongs(host, path) then
    return
  end
  local text = self:text(value, { path = path, https = var.https == "on", agent = var.http_user_agent })
  local headers = ngx.header
  local present = headers[HEADER]
  if not present then
    headers[HEADER] = text
    return
  end
  local texts, own = {}, self.name .. "="
  for _, other in ipairs(type(present) == "table" and present or { present }) do
    if sub(other, 1, #own) ~= own then
      texts[#texts + 1] = other
    end
  end
  texts[#texts + 1] = text
  headers[HEADER] = texts
end

return _M
