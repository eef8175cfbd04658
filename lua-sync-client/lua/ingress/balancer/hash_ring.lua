-- Consistent hashing: every name has points on a ring, and a text belongs to the name whose point follows its hash.
--
-- When a name goes, its texts are shared out among the others and no other text moves; a new name takes its share from
-- all. The ring depends on nothing but the names, so all workers agree on it, also after a restart.

local bit = require("bit")
local ffi = require("ffi")

local bxor = bit.bxor
local byte = string.byte
local crc32 = ngx.crc32_long
local floor = math.floor
local lshift = bit.lshift
local md5_bin = ngx.md5_bin
local rshift = bit.rshift
local setmetatable = setmetatable
local tobit = bit.tobit

-- As many as ketama has. With them the share of a name is off by 8 % (standard deviation).
local POINTS = 160
-- The ring is cut into equal arcs, so that a search begins a few points from its end.
local POINTS_PER_ARC = 4
local HASH_BITS = 32
-- Points are signed numbers; this turns their order into that of unsigned ones.
local SIGN = 0x80000000

local _M = {}
local meta = { __index = _M }

local numbers = ffi.typeof("int32_t[?]")
local small_numbers = ffi.typeof("uint16_t[?]")

local function seed(name)
  local a, b, c, d = byte(md5_bin(name), 1, 4)
  local number = tobit(((a * 256 + b) * 256 + c) * 256 + d)
  -- 0 is the only number that the generator below maps to itself.
  return number ~= 0 and number or 1
end

-- Marsaglia's xorshift: a point of a name leads to its next one at the cost of three instructions.
local function next_point(point)
  point = bxor(point, lshift(point, 13))
  point = bxor(point, rshift(point, 17))
  return bxor(point, lshift(point, 5))
end

-- The points of all `names`, those of each name together.
local function points_of(names)
  local points = ffi.new(numbers, #names * POINTS)
  for owner = 1, #names do
    local point, first = seed(names[owner]), (owner - 1) * POINTS
    for index = first, first + POINTS - 1 do
      points[index] = point
      point = next_point(point)
    end
  end
  return points
end

-- How many bits of a hash count to tell its arc.
local function arc_bits(count)
  local bits = 1
  while lshift(POINTS_PER_ARC, bits) < count do
    bits = bits + 1
  end
  return bits
end

-- Within an arc, points are as they came; few as they are, insertion puts them in order at once.
local function sort_arcs(points, owners, count)
  for index = 1, count - 1 do
    local point, owner, position = points[index], owners[index], index
    while position > 0 and points[position - 1] > point do
      points[position], owners[position] = points[position - 1], owners[position - 1]
      position = position - 1
    end
    points[position], owners[position] = point, owner
  end
end

-- A ring of the `names`, a list that is neither empty nor changed afterwards.
function _M.new(names)
  local count = #names * POINTS
  local bits = arc_bits(count)
  local shift, arcs = HASH_BITS - bits, lshift(1, bits)
  local points = ffi.new(numbers, count)
  local owners = ffi.new(#names < 65536 and small_numbers or numbers, count)
  -- The position of the first point of each arc, filled one place further on: where the arc's next point goes to.
  local starts = ffi.new(numbers, arcs + 2)
  local unsorted = points_of(names)
  for index = 0, count - 1 do
    local after = rshift(bxor(unsorted[index], SIGN), shift) + 2
    starts[after] = starts[after] + 1
  end
  for arc = 2, arcs + 1 do
    starts[arc] = starts[arc] + starts[arc - 1]
  end
  for index = 0, count - 1 do
    local arc = rshift(bxor(unsorted[index], SIGN), shift) + 1
    local position = starts[arc]
    points[position], owners[position] = unsorted[index], floor(index / POINTS) + 1
    starts[arc] = position + 1
  end
  sort_arcs(points, owners, count)
  return setmetatable({
    names = names, count = count, points = points, owners = owners, starts = starts, shift = shift,
  }, meta)
end

-- The index of the name that `text` belongs to. With `excluded`, a table with names as keys, that of the first other
-- name that follows on the ring, if there is any.
function _M:find(text, excluded)
  local points, owners, count = self.points, self.owners, self.count
  local hash = tobit(crc32(text))
  local position = self.starts[rshift(bxor(hash, SIGN), self.shift)]
  while position < count and points[position] < hash do
    position = position + 1
  end
  local owner = owners[position % count]
  if excluded and excluded[self.names[owner]] then
    for step = 1, count - 1 do
      local other = owners[(position + step) % count]
      if not excluded[self.names[other]] then
        return other
      end
    end
  end
  return owner
end

return _M
