local algorithm = require("ingress.balancer.algorithm")
local check = require("check")
local round_robin = require("ingress.balancer.round_robin")

local requested = algorithm.requested

return {
  ["nothing asked for"] = function()
    check.equal(requested({}), "round_robin")
    check.equal(requested({ ["load-balance"] = "", upstreamHashByConfig = {}, sessionAffinityConfig = { name = "" } }),
      "round_robin")
    check.equal(requested({ ["load-balance"] = ngx.null, upstreamHashByConfig = ngx.null }), "round_robin")
  end,
  ["by name"] = function()
    check.equal(requested({ ["load-balance"] = "ewma" }), "ewma")
    algorithm.choose({ ["load-balance"] = "ewma" })
    check.equal(algorithm.learns, true)
  end,
  ["hashing goes before the name"] = function()
    check.equal(requested({ ["load-balance"] = "ewma", upstreamHashByConfig = { ["upstream-hash-by"] = "$uri" } }),
      "chash")
    check.equal(requested({
      upstreamHashByConfig = { ["upstream-hash-by"] = "$uri", ["upstream-hash-by-subset"] = true },
    }), "chashsubset")
  end,
  ["cookie affinity goes before hashing"] = function()
    local spec = {
      sessionAffinityConfig = { name = "cookie", mode = "" },
      upstreamHashByConfig = { ["upstream-hash-by"] = "$uri" },
    }
    check.equal(requested(spec), "sticky_balanced")
    spec.sessionAffinityConfig.mode = "balanced"
    check.equal(requested(spec), "sticky_balanced")
    spec.sessionAffinityConfig.mode = "persistent"
    check.equal(requested(spec), "sticky_persistent")
  end,
  ["what is unknown is round robin"] = function()
    check.equal(algorithm.choose({ ["load-balance"] = "fastest_first" }) == round_robin, true)
    check.equal(algorithm.choose({ ["load-balance"] = "../config" }) == round_robin, true)
    check.equal(algorithm.choose({}) == round_robin, true)
  end,
}
