-- Decides whether a request goes to the canary of its backend.

local floor = math.floor
local random = math.random
local regex_find = ngx.re.find
local tonumber = tonumber
local type = type

local DEFAULT_TOTAL = 100

local _M = {}

local function text(value)
  return type(value) == "string" and value ~= "" and value or nil
end

-- What a decision needs of a backend's trafficShapingPolicy; nil when it has none.
function _M.compile(policy)
  if type(policy) ~= "table" then
    return nil
  end
  local header, cookie = text(policy.header), text(policy.cookie)
  local total = tonumber(policy.weightTotal) or 0
  return {
    header = header and "http_" .. header:gsub("%-", "_"):lower(),
    value = text(policy.headerValue),
    pattern = text(policy.headerPattern),
    cookie = cookie and "cookie_" .. cookie,
    weight = tonumber(policy.weight) or 0,
    total = total >= 1 and floor(total) or DEFAULT_TOTAL,
  }
end

-- Of the names of a backend's canaries, the one that is considered.
function _M.considered(alternatives)
  return type(alternatives) == "table" and text(alternatives[1]) or nil
end

local function by_keyword(value)
  if value == "always" then
    return true
  elseif value == "never" then
    return false
  end
  return nil
end

-- true, false, or nil when the header decides nothing.
local function by_header(policy, value)
  if policy.value then
    return value == policy.value or nil
  elseif policy.pattern then
    local from, _, err = regex_find(value, policy.pattern, "jo")
    if err then
      ngx.log(ngx.ERR, "matching canary header pattern ", policy.pattern, ": ", err)
      return false
    end
    return from ~= nil or nil
  end
  return by_keyword(value)
end

-- Whether the compiled `policy` sends the request to the canary: header, then cookie, then weight.
-- `variables` gives the request's header and cookie variables by name (ngx.var).
function _M.wins(policy, variables)
  if policy.header then
    local value = variables[policy.header]
    if value then
      local decision = by_header(policy, value)
      if decision ~= nil then
        return decision
      end
    end
  end
  if policy.cookie then
    local value = variables[policy.cookie]
    if value then
      local decision = by_keyword(value)
      if decision ~= nil then
        return decision
      end
    end
  end
  local weight = policy.weight
  return weight > 0 and random(policy.total) <= weight
end

return _M
