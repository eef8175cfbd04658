-- Round robin: the peers in turn, all with the same weight.
--
-- Each worker starts at a random peer, so that workers that were started together do not send in step.
--
-- Interface of every algorithm: new(backend) and, on the instance, sync(backend) and balance(tried), where
-- backend.peers is a list with at least one peer; after_balance() and is_affinitized() are optional.

local random = math.random
local setmetatable = setmetatable

local _M = {}
local meta = { __index = _M }

local function index_by_key(peers)
  local keys = {}
  for _, peer in ipairs(peers) do
    keys[peer.key] = true
  end
  return keys
end

function _M.new(backend)
  local peers = backend.peers
  return setmetatable({ peers = peers, keys = index_by_key(peers), turn = random(#peers) }, meta)
end

-- The same peers in another order change nothing.
function _M:sync(backend)
  local peers, keys = backend.peers, self.keys
  local same = #peers == #self.peers
  for index = 1, same and #peers or 0 do
    if not keys[peers[index].key] then
      same = false
      break
    end
  end
  if not same then
    self.peers, self.keys, self.turn = peers, index_by_key(peers), random(#peers)
  end
end

-- `tried` (nil at the first attempt) has the keys of the peers that this request has already been sent to.
function _M:balance(tried)
  local peers, turn = self.peers, self.turn
  local count = #peers
  if tried then
    for _ = 1, count do
      if not tried[peers[turn].key] then
        break
      end
      turn = turn % count + 1
    end
  end
  self.turn = turn % count + 1
  return peers[turn]
end

return _M
