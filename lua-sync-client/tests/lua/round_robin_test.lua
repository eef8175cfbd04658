local check = require("check")
local round_robin = require("ingress.balancer.round_robin")

local function backend(...)
  local peers = {}
  for index, key in ipairs({ ... }) do
    peers[index] = { key = key }
  end
  return { peers = peers }
end

local function keys(instance, count, tried)
  local seen = {}
  for index = 1, count do
    seen[index] = instance:balance(tried).key
  end
  return seen
end

local function counts(list)
  local result = {}
  for _, key in ipairs(list) do
    result[key] = (result[key] or 0) + 1
  end
  return result
end

return {
  ["every peer in turn"] = function()
    local instance = round_robin.new(backend("a", "b", "c"))
    check.equal(counts(keys(instance, 300)), { a = 100, b = 100, c = 100 })
  end,
  ["workers start at different peers"] = function()
    local starts = {}
    for _ = 1, 200 do
      starts[round_robin.new(backend("a", "b", "c")):balance().key] = true
    end
    check.equal(starts, { a = true, b = true, c = true })
  end,
  ["the same peers keep the turn, whatever their order"] = function()
    local instance = round_robin.new(backend("a", "b"))
    local first = instance:balance().key
    instance:sync(backend("b", "a"))
    check.equal(instance:balance().key ~= first, true)
    check.equal(instance:balance().key, first)
  end,
  ["other peers take over"] = function()
    local instance = round_robin.new(backend("a", "b", "c"))
    instance:balance()
    instance:sync(backend("d"))
    check.equal(keys(instance, 3), { "d", "d", "d" })
    instance:sync(backend("d", "e"))
    check.equal(counts(keys(instance, 10)), { d = 5, e = 5 })
  end,
  ["a retry takes a peer that was not tried"] = function()
    local instance = round_robin.new(backend("a", "b", "c"))
    check.equal(counts(keys(instance, 10, { a = true, c = true })), { b = 10 })
  end,
  ["when all were tried, any peer"] = function()
    local instance = round_robin.new(backend("a", "b"))
    check.equal(counts(keys(instance, 10, { a = true, b = true })), { a = 5, b = 5 })
  end,
}
