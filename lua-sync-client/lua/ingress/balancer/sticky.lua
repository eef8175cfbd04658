-- Cookie affinity: what both of its modes have in common.
--
-- A mode places peers under keys: place(instance) after the peers have changed, find(instance, key), which gives the
-- peer of a cookie's key or nil, and pick(instance, tried), which gives a peer for a client without one and its key.

local affinity_cookie = require("ingress.balancer.affinity_cookie")
local peers = require("ingress.peers")

local md5 = ngx.md5
local setmetatable = setmetatable

local _M = {}

-- The algorithm (see round_robin) of the mode that is described by `mode`.
function _M.define(mode)
  local find, pick, place = mode.find, mode.pick, mode.place
  local class = {}
  local meta = { __index = class }

  function class.new(backend)
    local name = backend.name
    local instance = setmetatable({ name = name, backend_key = md5(md5(name) .. name) }, meta)
    instance:sync(backend)
    return instance
  end

  function class:sync(backend)
    self.cookie = affinity_cookie.new(backend.spec.sessionAffinityConfig)
    if not self.peers or not peers.same(self.peers, backend.peers) then
      self.peers = backend.peers
      place(self)
    end
  end

  -- Whether the client has been sent to this backend before.
  function class:is_affinitized()
    local _, backend_key = self.cookie:read()
    return backend_key == self.backend_key
  end

  -- A client keeps its peer when that fails, unless the backend says otherwise: its session is there.
  function class:balance(tried)
    local cookie = self.cookie
    local key = cookie:read()
    local peer = key and not (tried and cookie.change_on_failure) and find(self, key)
    if peer then
      return peer
    end
    peer, key = pick(self, tried)
    cookie:write(key .. "|" .. self.backend_key)
    return peer
  end

  return class
end

return _M
