-- Chooses the balancing algorithm of a backend.

local affinity_modules = { persistent = "sticky_persistent" }
local NAMES = {
  round_robin = true, ewma = true, chash = true, chashsubset = true, sticky_balanced = true, sticky_persistent = true,
}
local FALLBACK = "round_robin"

local type = type

local _M = {}
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
  return text(spec["load-balance"]) or FALLBACK
end

local function load(name)
  if not NAMES[name] then
    return nil
  end
  local ok, module = pcall(require, "ingress.balancer." .. name)
  return ok and module or nil
end

-- The module for the backend `spec`. An algorithm that is not there is reported once, and round robin used.
function _M.choose(spec)
  local name = _M.requested(spec)
  local module = load(name)
  if module then
    return module
  end
  if not warned[name] then
    warned[name] = true
    ngx.log(ngx.WARN, "balancing algorithm ", name, " is not available, using ", FALLBACK)
  end
  return load(FALLBACK)
end

return _M
