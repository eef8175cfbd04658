local check = require("check")
local hash_ring = require("ingress.balancer.hash_ring")

local TEXTS = 20000

local function names(count)
  local list = {}
  for index = 1, count do
    list[index] = "10.0." .. math.floor(index / 250) .. "." .. index % 250 .. ":8080"
  end
  return list
end

local function owners(list)
  local ring, found = hash_ring.new(list), {}
  for index = 1, TEXTS do
    found[index] = list[ring:find("/item/" .. index)]
  end
  return found
end

local function moved(before, after)
  local count = 0
  for index = 1, TEXTS do
    if before[index] ~= after[index] then
      count = count + 1
    end
  end
  return count
end

local function without(list, gone)
  local rest = {}
  for _, name in ipairs(list) do
    if name ~= gone then
      rest[#rest + 1] = name
    end
  end
  return rest
end

return {
  ["points are in order, and the next one decides"] = function()
    local list = names(7)
    local ring = hash_ring.new(list)
    for index = 1, ring.count - 1 do
      check.equal(ring.points[index - 1] <= ring.points[index], true)
    end
    local counts = {}
    for index = 0, ring.count - 1 do
      local owner = ring.owners[index]
      counts[owner] = (counts[owner] or 0) + 1
    end
    check.equal(counts, { 160, 160, 160, 160, 160, 160, 160 })
    for number = 1, 500 do
      local hash = require("bit").tobit(ngx.crc32_long("x" .. number))
      local expected = ring.owners[0]
      for index = 0, ring.count - 1 do
        if ring.points[index] >= hash then
          expected = ring.owners[index]
          break
        end
      end
      check.equal(ring:find("x" .. number), expected)
    end
  end,
  ["everybody gets about the same, also of texts that are alike"] = function()
    for _, count in ipairs({ 2, 5, 20 }) do
      local shares = {}
      for _, name in ipairs(owners(names(count))) do
        shares[name] = (shares[name] or 0) + 1
      end
      for _, name in ipairs(names(count)) do
        local share = (shares[name] or 0) * count / TEXTS
        check.equal(share > 0.6 and share < 1.5, true, name .. " of " .. count .. ": " .. share)
      end
    end
  end,
  ["of a name that goes, only its own texts move"] = function()
    local list = names(10)
    local before, after = owners(list), owners(without(list, list[4]))
    for index = 1, TEXTS do
      if before[index] ~= list[4] then
        check.equal(after[index], before[index])
      end
    end
    check.equal(moved(before, after) > 0, true)
  end,
  ["a name that comes takes from all and gives nothing to others"] = function()
    local before, after = owners(names(10)), owners(names(11))
    local new, givers, count = names(11)[11], {}, 0
    for index = 1, TEXTS do
      if before[index] ~= after[index] then
        check.equal(after[index], new)
        givers[before[index]] = true
      end
    end
    for _ in pairs(givers) do
      count = count + 1
    end
    check.equal(count, 10)
  end,
  ["the order of names does not matter"] = function()
    local list = names(10)
    local reversed = {}
    for index, name in ipairs(list) do
      reversed[#list + 1 - index] = name
    end
    check.equal(moved(owners(list), owners(reversed)), 0)
  end,
  ["what is excluded is passed over, as if it were gone"] = function()
    local list = names(5)
    local ring, smaller = hash_ring.new(list), hash_ring.new(without(list, list[2]))
    local rest = without(list, list[2])
    for index = 1, 1000 do
      local text = "/item/" .. index
      check.equal(list[ring:find(text, { [list[2]] = true })], rest[smaller:find(text)])
    end
    local all = {}
    for _, name in ipairs(list) do
      all[name] = true
    end
    check.equal(ring:find("x", all), ring:find("x"))
  end,
  ["one name has everything"] = function()
    local ring = hash_ring.new({ "10.0.0.1:80" })
    check.equal(ring:find(""), 1)
    check.equal(ring:find("x", { ["10.0.0.1:80"] = true }), 1)
  end,
}
