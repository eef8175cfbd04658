-- /configuration/revision: what this NGINX has, so that a controller can tell what it must send.

local cjson = require("cjson")
local config = require("ingress.config")
local process = require("ngx.process")
local reply = require("ingress.configuration.reply")
local servers = require("ingress.servers")
local store = require("ingress.store")

local _M = {}

local backends = store.open("configuration_data")
local certificates, hosts = servers.certificates, servers.hosts

function _M.GET()
  local instance = backends:instance() .. "-" .. certificates:instance() .. "-" .. hosts:instance()
  return reply.raw(ngx.HTTP_OK, "application/json", table.concat({
    '{"backends":', reply.integer(backends:revision()),
    ',"servers":', reply.integer(certificates:revision()),
    ',"instance":', cjson.encode(instance),
    ',"pid":', reply.integer(process.get_master_pid()),
    ',"checksum":', cjson.encode(config.checksum),
    "}",
  }))
end

return _M
