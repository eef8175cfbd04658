local backend_list = require("ingress.backend_list")
local backends = require("ingress.backends")
local balancer = require("ingress.balancer")
local check = require("check")
local router = require("ingress.router")
local variants = require("ingress.variants")

local var = ngx.var

local ENDPOINTS = '"endpoints":[{"address":"10.0.0.1","port":"80"},{"address":"10.0.0.2","port":"80"}]'
local COOKIE = '"sessionAffinityConfig":{"name":"cookie","cookieSessionAffinity":{"name":"lane"}}'

local function post(list)
  check.equal(backend_list.replace({
    '{"name":"canary",' .. ENDPOINTS .. ',"trafficShapingPolicy":{"weight":100}}',
    '{"name":"web",' .. ENDPOINTS .. ',"variants":[' .. table.concat(list, ",") .. "]}",
  }, 0), {})
  return backends.get("web")
end

-- What serves requests of the Ingress shop/`name`.
local function serving(name)
  var.namespace, var.ingress_name = "shop", name
  local served = variants.of_request(backends.get("web"))
  var.namespace, var.ingress_name = "", ""
  return served
end

return {
  ["each Ingress has its own variant, and those without one the backend"] = function()
    local web = post({
      '{"ingresses":["shop/a","shop/b"],"load-balance":"ewma"}', '{"ingresses":["shop/c"],' .. COOKIE .. "}",
    })
    check.equal(serving("a") == serving("b"), true)
    check.equal(serving("a").algorithm == require("ingress.balancer.ewma"), true)
    check.equal(serving("c").algorithm == require("ingress.balancer.sticky_balanced"), true)
    check.equal(serving("z") == web, true)
    check.equal(serving("") == web, true)
  end,
  ["a variant has the backend's name and peers, or its own"] = function()
    local own = '"endpoints":[{"address":"10.96.0.1","port":"80"}]'
    local web = post({
      '{"ingresses":["shop/a"]}', '{"ingresses":["shop/b"],' .. own .. "}", '{"ingresses":["shop/c"],"endpoints":[]}',
    })
    check.equal(serving("a").peers == web.peers, true)
    check.equal(serving("b").peers[1].key, "10.96.0.1:80")
    check.equal(serving("c").balancer, nil)
    for _, name in ipairs({ "a", "b", "c" }) do
      check.equal(serving(name).name, "web")
    end
  end,
  ["a balancer outlives changes of the backend and of other variants"] = function()
    local a, b = '{"ingresses":["shop/a"],"load-balance":"ewma"}', '{"ingresses":["shop/b"],' .. COOKIE .. "}"
    post({ a, b })
    local instance = serving("b").balancer
    post({ b, a })
    check.equal(serving("b").balancer == instance, true)
    post({ b })
    check.equal(serving("b").balancer == instance, true)
    check.equal(serving("a") == backends.get("web"), true)
    check.equal(post({}).variants, nil)
  end,
  ["Ingresses that part do not share a variant any more"] = function()
    post({ '{"ingresses":["shop/a","shop/b"],"load-balance":"ewma"}' })
    local instance = serving("a").balancer
    post({ '{"ingresses":["shop/a"],"load-balance":"ewma"}', '{"ingresses":["shop/b"],"load-balance":"round_robin"}' })
    check.equal(serving("a").balancer == instance, true)
    check.equal(serving("b").algorithm == require("ingress.balancer.round_robin"), true)
  end,
  ["a variant has its own canary"] = function()
    post({ '{"ingresses":["shop/a"],"alternativeBackends":["canary"]}' })
    local function canary_of(name)
      var.proxy_upstream_name, var.proxy_alternative_upstream_name = "web", ""
      var.namespace, var.ingress_name = "shop", name
      router.rewrite()
      local canary = var.proxy_alternative_upstream_name
      var.proxy_upstream_name, var.namespace, var.ingress_name = "", "", ""
      return canary
    end
    check.equal(canary_of("a"), "canary")
    check.equal(canary_of("b"), "")
  end,
  ["the algorithm of the variant that chose learns of the response"] = function()
    local web = post({ '{"ingresses":["shop/a"],"load-balance":"ewma"}' })
    local told = {}
    serving("a").balancer.after_balance = function()
      told[#told + 1] = "a"
    end
    web.balancer.after_balance = function()
      told[#told + 1] = "web"
    end
    for _, name in ipairs({ "a", "b" }) do
      var.proxy_upstream_name, var.namespace, var.ingress_name = "web", "shop", name
      balancer.after_balance()
    end
    var.proxy_upstream_name, var.namespace, var.ingress_name = "", "", ""
    check.equal(told, { "a", "web" })
  end,
  ["what is no variant is left out"] = function()
    local web = post({ "1", "{}", '{"ingresses":7}', '{"ingresses":["shop/a"],"endpoints":7,"load-balance":"ewma"}' })
    check.equal(serving("a").peers == web.peers, true)
    check.equal(serving("b") == web, true)
  end,
}
