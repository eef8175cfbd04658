-- Lets one worker at a time change the shared dictionaries.
--
-- Waiting is counted in pauses, which timers make that only go forward: `ngx.now` and the expiry of entries follow the clock
-- on the wall, which may be set back by hours.

local KEY = "configuration"
local BREAKING = "breaking:"
local PAUSE = 0.002
-- Pauses after which who waits gives up: 5 seconds and more.
local PATIENCE = 2500
-- Pauses after which a lock that has not changed hands is taken from a worker that died while it held it. A holder never
-- yields.
local PATIENCE_WITH_ONE = 1000
-- Seconds for which nobody else takes a lock from the same holder.
local BREAK_EXPIRY = 60

local taken = 0

local _M = {}

-- Stands for one time that a lock is held.
local function token()
  taken = taken + 1
  return ngx.worker.pid() .. ":" .. taken
end

-- Takes the lock from a holder that does not exist any more. Only one of those who wait does so.
local function take_from(dict, holder)
  if dict:add(BREAKING .. holder, true, BREAK_EXPIRY) and dict:get(KEY) == holder then
    dict:delete(KEY)
  end
end

-- Runs `action` alone and returns what it returns; nil and "busy" when others kept the lock too long.
-- May yield before `action` begins; `action` itself must not.
function _M.with(action, ...)
  local dict = ngx.shared.configuration_locks
  local mine = token()
  local holder, since = nil, 0
  local pauses = 0
  while not dict:add(KEY, mine) do
    if pauses >= PATIENCE then
      return nil, "busy"
    end
    local now = dict:get(KEY)
    if now ~= holder then
      holder, since = now, pauses
    elseif now and pauses - since >= PATIENCE_WITH_ONE then
      take_from(dict, now)
      holder = nil
    end
    ngx.sleep(PAUSE)
    pauses = pauses + 1
  end
  local ok, first, second = pcall(action, ...)
  dict:delete(KEY)
  if not ok then
    error(first, 0)
  end
  return first, second
end

return _M
