-- Variants of a backend: Ingresses that share a Service's port, and want requests to be balanced in their own way.
--
-- A variant is like a backend: it has a spec, peers, a balancer and a canary. Its name is the backend's, so that the
-- cookies it gives out stay good when it comes or goes. Its balancer is made when a request first asks for it.

local algorithm = require("ingress.balancer.algorithm")
local canary = require("ingress.canary")

local ipairs = ipairs
local type = type
local var = ngx.var

local _M = {}

-- The variant of before that goes on as one for `ingresses`: the balancer that it has may still be used.
local function predecessor(former, ingresses, taken)
  for _, ingress in ipairs(ingresses) do
    local known = former and former[ingress]
    if known and not taken[known] then
      return known
    end
  end
  return nil
end

-- "namespace/name" of Ingresses → their variant of the backend, as `specs` describes them; nil where there are none.
-- `peers_of` gives the peers of a backend for endpoints.
function _M.read(backend, specs, peers_of)
  if type(specs) ~= "table" or not specs[1] then
    return nil
  end
  local variants, taken = {}, {}
  for _, spec in ipairs(specs) do
    local ingresses = type(spec) == "table" and spec.ingresses
    if type(ingresses) == "table" then
      local variant = predecessor(backend.variants, ingresses, taken) or { name = backend.name }
      taken[variant] = true
      variant.spec = spec
      variant.alternative = canary.considered(spec.alternativeBackends)
      variant.own_peers = type(spec.endpoints) == "table" and peers_of(backend, spec.endpoints) or nil
      variant.reported = nil
      variant.is_current = false
      spec.endpoints, spec.ingresses = nil, nil
      for _, ingress in ipairs(ingresses) do
        variants[ingress] = variant
      end
    end
  end
  return variants
end

-- The variant of a backend with variants that serves this request, or the backend itself.
function _M.of_request(backend)
  local variant = backend.variants[(var.namespace or "") .. "/" .. (var.ingress_name or "")]
  if not variant then
    return backend
  end
  local list = variant.own_peers or backend.peers
  if not variant.is_current or variant.peers ~= list then
    variant.is_current = true
    algorithm.apply(variant, list)
  end
  return variant
end

return _M
