-- Consistent hashing: requests with the same text go to the same peer, as long as it is there.

local hash_key = require("ingress.balancer.hash_key")
local hash_ring = require("ingress.balancer.hash_ring")
local peers = require("ingress.peers")

local setmetatable = setmetatable
local var = ngx.var

local _M = {}
local meta = { __index = _M }

function _M.new(backend)
  local instance = setmetatable({}, meta)
  instance:sync(backend)
  return instance
end

function _M:sync(backend)
  self.key = hash_key.compile(backend.spec.upstreamHashByConfig["upstream-hash-by"])
  if not self.peers or not peers.same(self.peers, backend.peers) then
    self.peers = backend.peers
    self.ring = hash_ring.new(peers.keys(backend.peers))
  end
end

-- A retry goes on around the ring, to the peer that would serve the text if the failed one were gone.
function _M:balance(tried)
  return self.peers[self.ring:find(self.key(var), tried)]
end

return _M
