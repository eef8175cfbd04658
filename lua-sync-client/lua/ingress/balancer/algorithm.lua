-- Chooses the balancing algorithm of a backend.

local affinity_modules = { persistent = "sticky_persistent" }
local NAMES = {
  round_robin = true, ewma = true, chash = true, chashsubset = true, sticky_balanced = true, sticky_persistent = true,
}
-- By name alone, without anything to hash, these cannot be.
local NEEDS_KEY = { chash = true, chashsubset = true }
local FALLBACK = "round_robin"

local type = type

-- Whether some backend of this worker has an algorithm that learns from responses.
local _M = { learns = false }
local warned = {}

local function text(value)
  return type(value) == "string" and value ~= "" and value or nil
end

local function table_or_empty(value)
  return type(value) == "table" and value or {}
end

-- The algorithm's name that the backend `spec` asks for: cookie affinity, else hashing, else load-balance.
function _M.requested(spec)
  local affinity = table_or_empty(spec.sessionAffinityConfig)
  if affinity.name == "cookie" then
    return affinity_modules[affinity.mode] or "sticky_balanced"
  end
  local hash = table_or_empty(spec.upstreamHashByConfig)
  if text(hash["upstream-hash-by"]) then
    return hash["upstream-hash-by-subset"] == true and "chashsubset" or "chash"
  end
  local name = text(spec["load-balance"]) or FALLBACK
  return NEEDS_KEY[name] and FALLBACK or name
end

-- The module for the backend `spec`. An algorithm that is not there is reported once, and round robin used.
function _M.choose(spec)
  local name = _M.requested(spec)
  if NAMES[name] then
    local module = require("ingress.balancer." .. name)
    _M.learns = _M.learns or module.after_balance ~= nil
    return module
  end
  if not warned[name] then
    warned[name] = true
    ngx.log(ngx.WARN, "balancing algorithm ", name, " is not available, using ", FALLBACK)
  end
  return require("ingress.balancer." .. FALLBACK)
end

-- Has `target`, a backend or a variant of one, send requests to the peers of `list` as its spec says.
function _M.apply(target, list)
  target.peers = list
  if #list == 0 then
    target.balancer = nil
    return
  end
  local module = _M.choose(target.spec)
  if target.balancer and target.algorithm == module then
    target.balancer:sync(target)
  else
    target.algorithm = module
    target.balancer = module.new(target)
  end
end

return _M
