-- Turns the endpoints of a backend into peers that a request can be sent to.
--
-- A peer is { host, port, key }: the host as NGINX wants it (IPv6 in brackets), the port as a number, and
-- "host:port", which is also how NGINX writes it in $upstream_addr. Peers are never changed once made.

local address = require("ingress.address")

local floor = math.floor
local tonumber = tonumber
local type = type

local _M = {}

local function port_number(value)
  local port = tonumber(value)
  if port and port == floor(port) and port >= 1 and port <= 65535 then
    return port
  end
  return nil
end

local function build(endpoint, status_port)
  if type(endpoint) ~= "table" or type(endpoint.address) ~= "string" then
    return nil, "an endpoint has no address"
  end
  local host, family, local_only = address.parse(endpoint.address)
  if not host then
    return nil, "endpoint address " .. endpoint.address .. " is not an IP address"
  end
  local port = port_number(endpoint.port)
  if not port then
    return nil, "endpoint " .. endpoint.address .. " has no valid port"
  end
  if family == 6 then
    host = "[" .. host .. "]"
  end
  if local_only and port == status_port then
    -- The status port trusts whoever can reach it; an Ingress must not open it to the world.
    return nil, "endpoint " .. host .. ":" .. port .. " is NGINX's own status port"
  end
  return { host = host, port = port, key = host .. ":" .. port }
end

-- The peers of `endpoints` (may be nil) in order, without repetitions, and a list of what was left out and why.
function _M.from_endpoints(endpoints, status_port)
  local peers, refused, seen = {}, {}, {}
  if type(endpoints) ~= "table" then
    return peers, refused
  end
  status_port = tonumber(status_port)
  for _, endpoint in ipairs(endpoints) do
    local peer, err = build(endpoint, status_port)
    if not peer then
      refused[#refused + 1] = err
    elseif not seen[peer.key] then
      seen[peer.key] = true
      peers[#peers + 1] = peer
    end
  end
  return peers, refused
end

-- Whether two lists have the same peers in the same order.
function _M.same(left, right)
  local count = #left
  if count ~= #right then
    return false
  end
  for index = 1, count do
    if left[index].key ~= right[index].key then
      return false
    end
  end
  return true
end

-- The keys of `list`, in order.
function _M.keys(list)
  local keys = {}
  for index = 1, #list do
    keys[index] = list[index].key
  end
  return keys
end

-- The peers of `list` whose key is not in `tried`; the whole list when none is left.
function _M.untried(list, tried)
  local rest = {}
  for index = 1, #list do
    if not tried[list[index].key] then
      rest[#rest + 1] = list[index]
    end
  end
  return #rest > 0 and rest or list
end

return _M
