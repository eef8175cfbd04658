local algorithm = require("ingress.balancer.algorithm")
local backend_list = require("ingress.backend_list")
local backends = require("ingress.backends")
local balancer = require("ingress.balancer")
local check = require("check")
local router = require("ingress.router")

local var = ngx.var

-- A backend and its canary that gets no request by weight.
local function post()
  local endpoints = '"endpoints":[{"address":"10.0.0.1","port":"80"}]'
  check.equal(backend_list.replace({
    '{"name":"canary",' .. endpoints .. ',"trafficShapingPolicy":{"weight":0}}',
    '{"name":"main",' .. endpoints .. ',"alternativeBackends":["canary"]}',
  }, 0), {})
  return backends.get("main"), backends.get("canary")
end

local function routed_to_canary()
  var.proxy_upstream_name = "main"
  router.rewrite()
  local alternative = var.proxy_alternative_upstream_name
  var.proxy_upstream_name = ""
  return alternative
end

local function yes()
  return true
end

return {
  ["a request bound to the primary stays there"] = function()
    local main, canary = post()
    canary.policy.weight = 100
    check.equal(routed_to_canary(), "canary")
    main.balancer.is_affinitized = yes
    check.equal(routed_to_canary(), "")
    main.balancer.is_affinitized = nil
  end,
  ["a request bound to the canary stays there"] = function()
    local _, canary = post()
    canary.policy.weight = 0
    check.equal(routed_to_canary(), "")
    canary.balancer.is_affinitized = yes
    check.equal(routed_to_canary(), "canary")
    canary.balancer.is_affinitized = nil
  end,
  ["the algorithm that chose learns of the response"] = function()
    local main, canary = post()
    local told = {}
    main.balancer.after_balance = function()
      told[#told + 1] = "main"
    end
    canary.balancer.after_balance = function()
      told[#told + 1] = "canary"
    end
    var.proxy_upstream_name, var.proxy_alternative_upstream_name = "main", ""
    algorithm.learns = false
    balancer.after_balance()
    check.equal(told, {}, "nobody learns")
    algorithm.learns = true
    balancer.after_balance()
    var.proxy_alternative_upstream_name = "canary"
    balancer.after_balance()
    var.proxy_upstream_name = "unknown"
    balancer.after_balance()
    check.equal(told, { "main", "canary" })
    main.balancer.after_balance, canary.balancer.after_balance = nil, nil
  end,
}
