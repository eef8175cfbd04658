-- Start of a worker process.

local random = require("ingress.random")

local _M = {}

-- init_worker_by_lua
function _M.init()
  random.seed()
end

return _M
