local check = require("check")

local MODES = { "sticky_balanced", "sticky_persistent" }

local function module(mode)
  return require("ingress.balancer." .. mode)
end

local function backend(name, keys, members)
  local peers = {}
  for index, key in ipairs(keys) do
    peers[index] = { key = key }
  end
  local cookie = { name = "c", locations = { ["127.0.0.1"] = { "/sticky" } } }
  for member, value in pairs(members or {}) do
    cookie[member] = value
  end
  return {
    name = name,
    peers = peers,
    spec = { sessionAffinityConfig = { name = "cookie", cookieSessionAffinity = cookie } },
  }
end

-- One attempt of a request that brings the cookie `value`. Returns the key of the peer and the cookie it is given.
local function request(instance, value, tried)
  if value then
    ngx.req.set_header("Cookie", "c=" .. value)
  end
  ngx.var.location_path = "/sticky"
  local peer = instance:balance(tried)
  local line = ngx.header["Set-Cookie"]
  ngx.header["Set-Cookie"] = nil
  ngx.req.clear_header("Cookie")
  ngx.var.location_path = ""
  return peer.key, line and line:match("^c=([^;]+);")
end

local function each_mode(test)
  return function()
    for _, mode in ipairs(MODES) do
      local ok, err = pcall(test, module(mode), mode)
      assert(ok, mode .. ": " .. tostring(err))
    end
  end
end

return {
  ["a client keeps its peer, and its cookie"] = each_mode(function(algorithm)
    local instance = algorithm.new(backend("b", { "p", "q", "r" }))
    local seen = {}
    for _ = 1, 100 do
      local peer, cookie = request(instance)
      seen[peer] = true
      for _ = 1, 3 do
        check.equal({ request(instance, cookie) }, { peer })
      end
      -- Another worker knows the cookie just as well.
      check.equal(request(algorithm.new(backend("b", { "p", "q", "r" })), cookie), peer)
    end
    check.equal(seen, { p = true, q = true, r = true })
  end),
  ["what the cookie looks like"] = function()
    local pattern = { sticky_balanced = "^%d+%.%d+%.%d+%.%d+|(%x+)$", sticky_persistent = "^%x+|(%x+)$" }
    for _, mode in ipairs(MODES) do
      local _, cookie = request(module(mode).new(backend("b", { "p" })))
      local backend_key = cookie:match(pattern[mode])
      check.equal(backend_key, ngx.md5(ngx.md5("b") .. "b"), mode)
    end
    local _, cookie = request(module("sticky_persistent").new(backend("b", { "p" })))
    check.equal(cookie:match("^%x+"), ngx.md5("bp"))
  end,
  ["a client is bound to the backend that gave it the cookie"] = each_mode(function(algorithm)
    local one, other = algorithm.new(backend("one", { "p" })), algorithm.new(backend("other", { "p" }))
    local _, cookie = request(one)
    check.equal(one:is_affinitized(), false)
    ngx.req.set_header("Cookie", "c=" .. cookie)
    check.equal(one:is_affinitized(), true)
    check.equal(other:is_affinitized(), false)
    ngx.req.clear_header("Cookie")
  end),
  ["a peer that is gone is replaced"] = each_mode(function(algorithm, mode)
    local instance = algorithm.new(backend("b", { "p", "q", "r" }))
    local peer, cookie
    repeat
      peer, cookie = request(instance)
    until peer == "q"
    instance:sync(backend("b", { "p", "r" }))
    local next_peer, next_cookie = request(instance, cookie)
    check.equal(next_peer == "p" or next_peer == "r", true)
    -- In balanced mode the cookie's key has a peer anyway.
    check.equal(next_cookie ~= nil, mode == "sticky_persistent")
    check.equal(request(instance, next_cookie or cookie), next_peer)
  end),
  ["new peers take clients in balanced mode only"] = each_mode(function(algorithm, mode)
    local instance = algorithm.new(backend("b", { "p", "q" }))
    local clients = {}
    for index = 1, 200 do
      local peer, cookie = request(instance)
      clients[index] = { peer = peer, cookie = cookie }
    end
    instance:sync(backend("b", { "p", "q", "r", "s" }))
    local moved = 0
    for _, client in ipairs(clients) do
      local peer = request(instance, client.cookie)
      if peer ~= client.peer then
        check.equal(peer == "r" or peer == "s", true)
        moved = moved + 1
      end
    end
    check.equal(mode == "sticky_balanced" and moved > 50 and moved < 150 or moved == 0, true, moved)
  end),
  ["a failed peer keeps its clients"] = each_mode(function(algorithm)
    local instance = algorithm.new(backend("b", { "p", "q" }))
    local peer, cookie = request(instance)
    check.equal({ request(instance, cookie, { [peer] = true }) }, { peer })
  end),
  ["with change on failure, another peer and another cookie"] = each_mode(function(algorithm)
    local instance = algorithm.new(backend("b", { "p", "q", "r" }, { change_on_failure = true }))
    for _ = 1, 50 do
      local peer, cookie = request(instance)
      check.equal(request(instance, cookie), peer)
      local other, changed = request(instance, cookie, { [peer] = true })
      check.equal(other ~= peer, true)
      check.equal(request(instance, changed), other)
    end
  end),
  ["a client without a cookie does not get the peer that failed it"] = each_mode(function(algorithm)
    local instance = algorithm.new(backend("b", { "p", "q", "r" }))
    for _ = 1, 50 do
      local peer, cookie = request(instance, nil, { p = true, r = true })
      check.equal(peer, "q")
      check.equal(request(instance, cookie), "q")
    end
  end),
  ["when all were tried, any peer"] = each_mode(function(algorithm)
    local instance = algorithm.new(backend("b", { "p", "q" }))
    local seen = {}
    for _ = 1, 100 do
      seen[request(instance, nil, { p = true, q = true })] = true
    end
    check.equal(seen, { p = true, q = true })
  end),
  ["another name of the cookie counts at once"] = each_mode(function(algorithm)
    local instance = algorithm.new(backend("b", { "p" }))
    instance:sync(backend("b", { "p" }, { name = "d" }))
    ngx.var.location_path = "/sticky"
    instance:balance()
    check.equal(ngx.header["Set-Cookie"]:match("^%a+"), "d")
    ngx.header["Set-Cookie"] = nil
    ngx.var.location_path = ""
  end),
}
