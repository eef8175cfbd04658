local chashsubset = require("ingress.balancer.chashsubset")
local check = require("check")

local function backend(keys, size, expression)
  local peers = {}
  for index, key in ipairs(keys) do
    peers[index] = { key = key }
  end
  return {
    peers = peers,
    spec = {
      upstreamHashByConfig = {
        ["upstream-hash-by"] = expression or "$http_x_key",
        ["upstream-hash-by-subset"] = true,
        ["upstream-hash-by-subset-size"] = size,
      },
    },
  }
end

-- The peers that requests with `text` go to, as one text.
local function served_by(instance, text, tried)
  ngx.req.set_header("X-Key", text)
  local set, list = {}, {}
  for _ = 1, 200 do
    set[instance:balance(tried).key] = true
  end
  for key in pairs(set) do
    list[#list + 1] = key
  end
  table.sort(list)
  return table.concat(list)
end

local function all_sets(instance)
  local sets = {}
  for number = 1, 200 do
    sets[served_by(instance, "user-" .. number)] = true
  end
  return sets
end

return {
  ["endpoints are cut in order, the last set filled up from the front"] = function()
    check.equal(all_sets(chashsubset.new(backend({ "a", "b", "c", "d", "e", "f" }, 3))), { abc = true, def = true })
    check.equal(all_sets(chashsubset.new(backend({ "a", "b", "c", "d", "e" }, 2))),
      { ab = true, cd = true, ae = true })
    check.equal(all_sets(chashsubset.new(backend({ "a", "b", "c", "d", "e", "f", "g" }, nil))),
      { abc = true, def = true, abg = true })
  end,
  ["a set is never larger than all"] = function()
    check.equal(all_sets(chashsubset.new(backend({ "a", "b" }, 10))), { ab = true })
    check.equal(all_sets(chashsubset.new(backend({ "a" }, 3))), { a = true })
    check.equal(all_sets(chashsubset.new(backend({ "a", "b" }, 0))), { a = true, b = true })
  end,
  ["a text keeps its set"] = function()
    local one, other = {}, {}
    for number = 1, 50 do
      local keys = { "a", "b", "c", "d", "e", "f" }
      one[number] = served_by(chashsubset.new(backend(keys, 2)), "user-" .. number)
      other[number] = served_by(chashsubset.new(backend(keys, 2)), "user-" .. number)
    end
    check.equal(one, other)
  end,
  ["peers, sizes and expressions count at once"] = function()
    local instance = chashsubset.new(backend({ "a", "b", "c", "d" }, 2))
    instance:sync(backend({ "a", "b", "c", "d" }, 4))
    check.equal(all_sets(instance), { abcd = true })
    instance:sync(backend({ "a", "b" }, 4))
    check.equal(all_sets(instance), { ab = true })
    instance:sync(backend({ "a", "b" }, 1, "fixed"))
    check.equal(served_by(instance, "x"), served_by(instance, "y"))
  end,
  ["a retry stays in the set and avoids what was tried"] = function()
    local instance = chashsubset.new(backend({ "a", "b", "c" }, 3))
    check.equal(served_by(instance, "x", { a = true }), "bc")
    check.equal(served_by(instance, "x", { a = true, c = true }), "b")
    check.equal(served_by(instance, "x", { a = true, b = true, c = true }), "abc")
  end,
}
