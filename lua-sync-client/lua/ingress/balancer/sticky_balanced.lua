-- Cookie affinity in balanced mode: a client's key is hashed, so that a new peer takes over some of the clients.

local hash_ring = require("ingress.balancer.hash_ring")
local peers = require("ingress.peers")
local sticky = require("ingress.balancer.sticky")

local format = string.format
local now = ngx.now
local pid = ngx.worker.pid
local random = math.random

-- How many keys are tried to find a peer that has not failed.
local ATTEMPTS = 20

local function place(self)
  self.ring = hash_ring.new(peers.keys(self.peers))
end

local function find(self, key)
  return self.peers[self.ring:find(key)]
end

local function pick(self, tried)
  local key, peer
  for _ = 1, tried and ATTEMPTS or 1 do
    key = format("%.3f.%d.%d", now(), pid(), random(999999))
    peer = find(self, key)
    if not tried or not tried[peer.key] then
      break
    end
  end
  return peer, key
end

return sticky.define({ place = place, find = find, pick = pick })
