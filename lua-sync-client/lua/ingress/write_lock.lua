-- Lets one worker at a time change the shared dictionaries.

local KEY = "configuration"
-- Seconds after which a lock is taken from a worker that died while it held it. A holder never yields.
local EXPIRY = 10
local PATIENCE = 5
local PAUSE = 0.002

local _M = {}

-- Runs `action` alone and returns what it returns; nil and "busy" when others kept the lock too long.
-- May yield before `action` begins; `action` itself must not.
function _M.with(action, ...)
  local dict = ngx.shared.configuration_locks
  local deadline = ngx.now() + PATIENCE
  while not dict:add(KEY, ngx.worker.pid(), EXPIRY) do
    if ngx.now() > deadline then
      return nil, "busy"
    end
    ngx.sleep(PAUSE)
  end
  local ok, first, second = pcall(action, ...)
  dict:delete(KEY)
  if not ok then
    error(first, 0)
  end
  return first, second
end

return _M
