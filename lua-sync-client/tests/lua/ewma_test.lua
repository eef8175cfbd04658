local check = require("check")
local ewma = require("ingress.balancer.ewma")

local scores, touched = ngx.shared.balancer_ewma, ngx.shared.balancer_ewma_last_touched_at

local function backend(...)
  local peers = {}
  for index, key in ipairs({ ... }) do
    peers[index] = { key = key }
  end
  return { peers = peers }
end

local function forget()
  scores:flush_all()
  touched:flush_all()
end

local function counts(instance, number, tried)
  local result = {}
  for _ = 1, number do
    local key = instance:balance(tried).key
    result[key] = (result[key] or 0) + 1
  end
  return result
end

local function near(actual, expected)
  check.equal(math.abs(actual - expected) < 1e-6, true, actual .. " instead of " .. expected)
end

return {
  ["the first response time is the average"] = function()
    forget()
    check.equal(ewma.score("p", 100), 0)
    ewma.learn("p", 0.5, 100)
    near(ewma.score("p", 100), 0.5)
  end,
  ["the past counts less the longer ago it is"] = function()
    forget()
    ewma.learn("p", 0.5, 100)
    near(ewma.score("p", 110), 0.5 * math.exp(-1))
    ewma.learn("p", 2, 105)
    near(ewma.score("p", 105), 0.5 * math.exp(-0.5) + 2 * (1 - math.exp(-0.5)))
    -- A clock that goes back is no future.
    near(ewma.score("p", 50), ewma.score("p", 105))
  end,
  ["the faster one of two"] = function()
    forget()
    local instance, now = ewma.new(backend("slow", "fast")), ngx.now()
    ewma.learn("slow", 0.4, now)
    ewma.learn("fast", 0.01, now)
    check.equal(counts(instance, 50), { fast = 50 })
    near(tonumber(ngx.var.balancer_ewma_score), 0.01 * math.exp(-(ngx.now() - now) / 10))
  end,
  ["any two of several, so that the slowest gets nothing and all others something"] = function()
    forget()
    local instance, now = ewma.new(backend("a", "b", "c", "d")), ngx.now()
    for key, seconds in pairs({ a = 0.1, b = 0.2, c = 0.3, d = 0.4 }) do
      ewma.learn(key, seconds, now)
    end
    local served = counts(instance, 3000)
    -- Of the six pairs, a wins three, b two and c one.
    check.equal(served.d, nil)
    for key, share in pairs({ a = 1500, b = 1000, c = 500 }) do
      check.equal(math.abs(served[key] - share) < 200, true, key .. " " .. served[key])
    end
  end,
  ["among equals, everyone"] = function()
    forget()
    local served = counts(ewma.new(backend("a", "b", "c")), 3000)
    for _, key in ipairs({ "a", "b", "c" }) do
      check.equal(math.abs(served[key] - 1000) < 200, true, key .. " " .. served[key])
    end
  end,
  ["one peer needs no average"] = function()
    check.equal(counts(ewma.new(backend("only")), 3), { only = 3 })
    check.equal(ngx.var.balancer_ewma_score, "-1")
    check.equal(counts(ewma.new(backend("only")), 3, { only = true }), { only = 3 })
  end,
  ["a retry avoids what was tried, while there is anything else"] = function()
    forget()
    local instance = ewma.new(backend("a", "b", "c"))
    ewma.learn("c", 5, ngx.now())
    check.equal(counts(instance, 20, { a = true, b = true }), { c = 20 })
    check.equal(counts(instance, 20, { a = true, b = true, c = true }).c, nil)
  end,
  ["a new peer starts with the average of the others"] = function()
    forget()
    local instance, now = ewma.new(backend("a", "b")), ngx.now()
    ewma.learn("a", 0.2, now)
    ewma.learn("b", 0.4, now)
    instance:sync(backend("a", "b", "c"))
    check.equal(math.abs(ewma.score("c", now) - 0.3) < 0.01, true)
    -- Another worker that comes to it later changes nothing.
    ewma.learn("c", 9, now + 100)
    local score = ewma.score("c", now + 100)
    local late = ewma.new(backend("a", "b"))
    late:sync(backend("a", "b", "c"))
    near(ewma.score("c", now + 100), score)
  end,
  ["a peer that is gone is forgotten"] = function()
    forget()
    local instance = ewma.new(backend("a", "b"))
    ewma.learn("a", 0.2, ngx.now())
    ewma.learn("b", 0.4, ngx.now())
    instance:sync(backend("b"))
    check.equal({ scores:get("a"), touched:get("a") }, {})
    check.equal(scores:get("b") ~= nil, true)
    check.equal(counts(instance, 2), { b = 2 })
  end,
}
