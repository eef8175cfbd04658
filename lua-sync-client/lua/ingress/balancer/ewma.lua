-- Peak EWMA: of two peers taken at random, the one with the lower moving average of response times.
--
-- Averages belong to the peer's address, not to the backend, and all workers share them. An old one counts less the
-- longer ago the last response was, so a peer that nobody asks becomes worth a try again.

local ngx_now = ngx.now
local peers = require("ingress.peers")

local exp = math.exp
local find = string.find
local match = string.match
local max = math.max
local random = math.random
local setmetatable = setmetatable
local tonumber = tonumber
local tostring = tostring
local var = ngx.var

-- Seconds in which the weight of the past falls to 1/e.
local DECAY = 10
-- Seconds after which an average has decayed to nothing, and is forgotten.
local LIFETIME = 300

local _M = {}
local meta = { __index = _M }

local scores = ngx.shared.balancer_ewma
local touched = ngx.shared.balancer_ewma_last_touched_at

-- The share of the past in the average of the peer `key` at `now`.
local function remainder(key, now)
  local since = touched:get(key)
  return since and exp(-max(0, now - since) / DECAY) or 0
end

local function store(key, score, now)
  scores:set(key, score, LIFETIME)
  touched:set(key, now, LIFETIME)
end

-- The average of the peer `key` as of `now`, 0 for a peer of which nothing is known.
function _M.score(key, now)
  local score = scores:get(key)
  return score and score * remainder(key, now) or 0
end

-- Takes a response time of the peer `key`, in seconds, into its average. Of two workers that do so at the same moment,
-- one may go unheard, which costs less than a lock.
function _M.learn(key, response_time, now)
  local past = remainder(key, now)
  store(key, (scores:get(key) or 0) * past + response_time * (1 - past), now)
end

-- Peers that are new start with the average of the others: without a response time of its own, a peer would draw all
-- requests at once.
local function join(list, known, now)
  local sum, count, joined = 0, 0, {}
  for index = 1, #list do
    local key = list[index].key
    if scores:get(key) then
      sum, count = sum + _M.score(key, now), count + 1
    elseif not known[key] then
      joined[#joined + 1] = key
    end
  end
  if count > 0 then
    for _, key in ipairs(joined) do
      store(key, sum / count, now)
    end
  end
end

local function leave(known, list)
  local present = {}
  for index = 1, #list do
    present[list[index].key] = true
  end
  for key in pairs(known) do
    if not present[key] then
      scores:delete(key)
      touched:delete(key)
    end
  end
end

function _M.new(backend)
  return setmetatable({ peers = backend.peers }, meta)
end

function _M:sync(backend)
  local before, list = self.peers, backend.peers
  if peers.same(before, list) then
    return
  end
  local known = {}
  for index = 1, #before do
    known[before[index].key] = true
  end
  leave(known, list)
  join(list, known, ngx_now())
  self.peers = list
end

function _M:balance(tried)
  local list = self.peers
  if #list == 1 then
    var.balancer_ewma_score = "-1"
    return list[1]
  end
  if tried then
    list = peers.untried(list, tried)
  end
  local now, count = ngx_now(), #list
  local first = random(count)
  local peer = list[first]
  local score = _M.score(peer.key, now)
  if count > 1 then
    local second = random(count - 1)
    local other = list[second < first and second or second + 1]
    local other_score = _M.score(other.key, now)
    if other_score < score then
      peer, score = other, other_score
    end
  end
  var.balancer_ewma_score = tostring(score)
  return peer
end

-- The last of NGINX's values for each attempt, "0.004, 0.001" or, across internal redirects, "0.004 : 0.001".
local function last(text)
  if text and find(text, " ", 1, true) then
    return match(text, "([^%s,]+)$")
  end
  return text
end

function _M:after_balance() -- luacheck: no self
  local key = last(var.upstream_addr)
  if key then
    local connecting = tonumber(last(var.upstream_connect_time)) or 0
    local responding = tonumber(last(var.upstream_response_time)) or 0
    _M.learn(key, connecting + responding, ngx_now())
  end
end

return _M
