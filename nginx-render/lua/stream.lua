-- Picks an endpoint for a connection of a TCP or UDP service: one of the lines of the file of the port that it came in on,
-- and the next ones where that endpoint cannot be reached. For NGINX's stream block, phase balancer_by_lua.

local balancer = require("ngx.balancer")

-- The first line may name the group of the endpoints, which is for njs.
local function endpoints(name)
  local file, fault = io.open(DIRECTORY .. "/" .. name)
  if not file then
    return nil, fault
  end
  local list = {}
  for line in file:lines() do
    local address, port = line:match("^(%S+):(%d+)$")
    if address then
      list[#list + 1] = { address, tonumber(port) }
    end
  end
  file:close()
  return list
end

local ctx = ngx.ctx
if not ctx.endpoints then
  local name = ngx.var.protocol:lower() .. "-" .. ngx.var.server_port
  local list, fault = endpoints(name)
  if not list then
    ngx.log(ngx.ERR, "reading the endpoints of ", name, ": ", fault)
    return ngx.exit(ngx.ERROR)
  end
  if #list == 0 then
    ngx.log(ngx.ERR, name, " has no endpoints")
    return ngx.exit(ngx.ERROR)
  end
  ctx.endpoints = list
  ctx.tries = tonumber(ngx.var.connection) or 0
  if #list > 1 then
    balancer.set_more_tries(#list - 1)
  end
end

local chosen = ctx.endpoints[ctx.tries % #ctx.endpoints + 1]
ctx.tries = ctx.tries + 1
local done, fault = balancer.set_current_peer(chosen[1], chosen[2])
if not done then
  ngx.log(ngx.ERR, "cannot choose ", chosen[1], ": ", fault)
  return ngx.exit(ngx.ERROR)
end
