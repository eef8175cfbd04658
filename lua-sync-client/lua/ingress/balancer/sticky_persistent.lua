-- Cookie affinity in persistent mode: a client's key names its peer, so that it stays there as long as the peer does.

local peers = require("ingress.peers")
local sticky = require("ingress.balancer.sticky")

local md5 = ngx.md5
local random = math.random

local function place(self)
  local by_key, key_of = {}, {}
  for _, peer in ipairs(self.peers) do
    local key = md5(self.name .. peer.key)
    by_key[key], key_of[peer.key] = peer, key
  end
  self.by_key, self.key_of = by_key, key_of
end

local function find(self, key)
  return self.by_key[key]
end

local function pick(self, tried)
  local candidates = tried and peers.untried(self.peers, tried) or self.peers
  local peer = candidates[random(#candidates)]
  return peer, self.key_of[peer.key]
end

return sticky.define({ place = place, find = find, pick = pick })
