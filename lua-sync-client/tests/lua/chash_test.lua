local chash = require("ingress.balancer.chash")
local check = require("check")

local function backend(keys, expression)
  local peers = {}
  for index, key in ipairs(keys) do
    peers[index] = { key = key }
  end
  return { peers = peers, spec = { upstreamHashByConfig = { ["upstream-hash-by"] = expression or "$http_x_key" } } }
end

-- Peers by the value of X-Key.
local function spread(instance, tried)
  local result = {}
  for number = 1, 300 do
    ngx.req.set_header("X-Key", "user-" .. number)
    result[number] = instance:balance(tried).key
  end
  return result
end

local function distinct(list)
  local set = {}
  for _, key in ipairs(list) do
    set[key] = true
  end
  return set
end

return {
  ["the same text, the same peer, in every worker"] = function()
    local first = spread(chash.new(backend({ "p", "q", "r" })))
    check.equal(spread(chash.new(backend({ "p", "q", "r" }))), first)
    check.equal(distinct(first), { p = true, q = true, r = true })
  end,
  ["other texts stay when a peer goes"] = function()
    local instance = chash.new(backend({ "p", "q", "r" }))
    local before = spread(instance)
    instance:sync(backend({ "p", "r" }))
    local after = spread(instance)
    for number, key in ipairs(before) do
      check.equal(after[number] ~= "q" and (key == "q" or after[number] == key), true)
    end
    instance:sync(backend({ "p", "q", "r" }))
    check.equal(spread(instance), before)
  end,
  ["another expression counts at once"] = function()
    local instance = chash.new(backend({ "p", "q", "r" }))
    instance:sync(backend({ "p", "q", "r" }, "fixed"))
    local count = 0
    for _ in pairs(distinct(spread(instance))) do
      count = count + 1
    end
    check.equal(count, 1)
  end,
  ["a retry goes where the text would go without the failed peer"] = function()
    local retried = spread(chash.new(backend({ "p", "q", "r" })), { q = true })
    check.equal(retried, spread(chash.new(backend({ "p", "r" }))))
  end,
}
