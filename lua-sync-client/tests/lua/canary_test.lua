local canary = require("ingress.canary")
local check = require("check")

local function wins(policy, variables)
  return canary.wins(canary.compile(policy), variables or {})
end

local function share(policy, variables)
  local compiled, won = canary.compile(policy), 0
  for _ = 1, 10000 do
    if canary.wins(compiled, variables or {}) then
      won = won + 1
    end
  end
  return won / 10000
end

return {
  ["no policy"] = function()
    check.equal(canary.compile(nil), nil)
    check.equal(canary.compile(ngx.null), nil)
  end,
  ["names become variables"] = function()
    local compiled = canary.compile({ header = "X-Use-Canary", cookie = "use_canary" })
    check.equal(compiled.header, "http_x_use_canary")
    check.equal(compiled.cookie, "cookie_use_canary")
  end,
  ["header keywords"] = function()
    local policy = { header = "X-C", weight = 0 }
    check.equal(wins(policy, { http_x_c = "always" }), true)
    check.equal(wins(policy, { http_x_c = "never" }), false)
    check.equal(wins({ header = "X-C", weight = 100 }, { http_x_c = "never" }), false)
    check.equal(wins({ header = "X-C", weight = 100 }, { http_x_c = "other" }), true)
    check.equal(wins(policy), false)
  end,
  ["header value"] = function()
    local policy = { header = "X-C", headerValue = "blue", headerPattern = "^never", weight = 0 }
    check.equal(wins(policy, { http_x_c = "blue" }), true)
    check.equal(wins(policy, { http_x_c = "Blue" }), false)
    -- With a value the keywords mean nothing, and another value goes on to the next rule.
    check.equal(wins(policy, { http_x_c = "always" }), false)
    policy.weight = 100
    check.equal(wins(policy, { http_x_c = "never" }), true)
  end,
  ["header pattern"] = function()
    local policy = { header = "X-C", headerPattern = "blu(e|ish)", weight = 0 }
    check.equal(wins(policy, { http_x_c = "light blueish" }), true)
    check.equal(wins(policy, { http_x_c = "green" }), false)
    policy.weight = 100
    check.equal(wins(policy, { http_x_c = "green" }), true)
  end,
  ["a wrong pattern keeps the primary"] = function()
    check.equal(wins({ header = "X-C", headerPattern = "[", weight = 100 }, { http_x_c = "x" }), false)
  end,
  ["cookie after header"] = function()
    local policy = { header = "X-C", cookie = "c", weight = 0 }
    check.equal(wins(policy, { cookie_c = "always" }), true)
    check.equal(wins(policy, { http_x_c = "other", cookie_c = "always" }), true)
    check.equal(wins(policy, { http_x_c = "never", cookie_c = "always" }), false)
    check.equal(wins({ cookie = "c", weight = 100 }, { cookie_c = "never" }), false)
    check.equal(wins({ cookie = "c", weight = 100 }, { cookie_c = "other" }), true)
  end,
  ["weight"] = function()
    check.equal(share({ weight = 0 }), 0)
    check.equal(share({ weight = 100 }), 1)
    check.equal(math.abs(share({ weight = 30, weightTotal = 100 }) - 0.3) < 0.03, true)
    check.equal(math.abs(share({ weight = 30, weightTotal = 0 }) - 0.3) < 0.03, true)
    check.equal(math.abs(share({ weight = 5, weightTotal = 10 }) - 0.5) < 0.03, true)
    check.equal(share({ weight = 20, weightTotal = 10 }), 1)
    check.equal(math.abs(share({ weight = 100, weightTotal = 400 }) - 0.25) < 0.03, true)
  end,
}
