-- Consistent hashing onto sets of peers: requests with the same text are spread over a few peers at random.

local hash_key = require("ingress.balancer.hash_key")
local hash_ring = require("ingress.balancer.hash_ring")
local peers = require("ingress.peers")

local ceil = math.ceil
local floor = math.floor
local max = math.max
local random = math.random
local setmetatable = setmetatable
local tonumber = tonumber
local var = ngx.var

local DEFAULT_SIZE = 3

local _M = {}
local meta = { __index = _M }

-- Cuts `list` into sets of `size` peers, in order. The last one is filled up from the front; no peer is in a set twice.
local function cut(list, size)
  local count = #list
  size = size < count and size or count
  local sets = {}
  for number = 1, ceil(count / size) do
    local set = {}
    for place = 1, size do
      set[place] = list[((number - 1) * size + place - 1) % count + 1]
    end
    sets[number] = set
  end
  return sets
end

local function names(count)
  local list = {}
  for number = 1, count do
    list[number] = "set" .. number
  end
  return list
end

function _M.new(backend)
  local instance = setmetatable({}, meta)
  instance:sync(backend)
  return instance
end

function _M:sync(backend)
  local config = backend.spec.upstreamHashByConfig
  local size = max(1, floor(tonumber(config["upstream-hash-by-subset-size"]) or DEFAULT_SIZE))
  self.key = hash_key.compile(config["upstream-hash-by"])
  if self.size ~= size or not peers.same(self.peers, backend.peers) then
    self.size, self.peers = size, backend.peers
    self.sets = cut(backend.peers, size)
    self.ring = hash_ring.new(names(#self.sets))
  end
end

-- A retry stays within the set, with a peer that was not tried while there is one.
function _M:balance(tried)
  local set = self.sets[self.ring:find(self.key(var))]
  if tried then
    set = peers.untried(set, tried)
  end
  return set[random(#set)]
end

return _M
