-- Balancer phase: gives NGINX the peer for each attempt of a request.

local algorithm = require("ingress.balancer.algorithm")
local backends = require("ingress.backends")
local ngx_balancer = require("ngx.balancer")
local routed = require("ingress.routed")
local variants = require("ingress.variants")

local forget = routed.forget
local get = backends.get
local get_last_failure = ngx_balancer.get_last_failure
local gmatch = string.gmatch
local peek = backends.peek
local recall = routed.recall
local set_current_peer = ngx_balancer.set_current_peer
local set_more_tries = ngx_balancer.set_more_tries
local var = ngx.var

-- NGX_BUSY: "no live upstreams", which NGINX answers with 502 without connecting anywhere.
local BUSY = -3

local _M = {}

-- The backend whose peers serve this request: its canary's when the rewrite phase chose it. `find` is how to look up.
local function serving_backend(find)
  local name = var.proxy_upstream_name
  local backend = name and find(name)
  if backend and backend.variants then
    backend = variants.of_request(backend)
  end
  if backend and backend.alternative then
    local alternative = var.proxy_alternative_upstream_name
    if alternative and alternative ~= "" then
      alternative = find(alternative)
      if alternative and alternative.balancer then
        return alternative
      end
    end
  end
  return backend
end

-- The keys of the peers in $upstream_addr, "10.0.0.1:80, [fd00::1]:80".
local function tried_peers()
  local tried = {}
  for key in gmatch(var.upstream_addr or "", "[^%s,]+") do
    tried[key] = true
  end
  return tried
end

-- balancer_by_lua
function _M.balance()
  local backend, tried = recall(), nil
  if not backend then
    -- A long request body or an earlier attempt lies between the rewrite phase and this: what went meanwhile is gone.
    backend = serving_backend(get)
    tried = get_last_failure() and tried_peers() or nil
  end
  local instance = backend and backend.balancer
  if not instance then
    ngx.log(ngx.WARN, "backend ", var.proxy_upstream_name, " has lost its endpoints since the request began")
    return ngx.exit(BUSY)
  end
  local peer = instance:balance(tried)
  -- NGINX's own limits (proxy_next_upstream*) decide whether there is another attempt.
  set_more_tries(1)
  local ok, err = set_current_peer(peer.host, peer.port)
  if not ok then
    ngx.log(ngx.ERR, "setting peer ", peer.key, " of backend ", backend.name, ": ", err)
    return ngx.exit(BUSY)
  end
end

-- log_by_lua
function _M.after_balance()
  forget()
  if not algorithm.learns then
    return
  end
  local backend = serving_backend(peek)
  local instance = backend and backend.balancer
  if instance and instance.after_balance then
    instance:after_balance()
  end
end

return _M
