local check = require("check")
local write_lock = require("ingress.write_lock")

local KEY = "configuration"

local function same(value)
  return value
end

return {
  ["a lock of a worker that died is taken from it, whatever the clock on the wall says"] = function()
    local dict = ngx.shared.configuration_locks
    -- It was to expire by a clock that has been set back since.
    dict:set(KEY, "1:1", 3600)
    local now = ngx.now
    ngx.now = function()
      return 0
    end
    local ok, result, failure = pcall(write_lock.with, same, "done")
    ngx.now = now
    check.equal(ok, true)
    check.equal(result, "done")
    check.equal(failure, nil)
    check.equal(dict:get(KEY), nil)
  end,
  ["a lock that is held is waited for"] = function()
    local dict = ngx.shared.configuration_locks
    dict:set(KEY, "1:2")
    local released = false
    local holder = ngx.thread.spawn(function()
      ngx.sleep(0.05)
      released = true
      dict:delete(KEY)
    end)
    local seen = write_lock.with(function()
      return released
    end)
    ngx.thread.wait(holder)
    check.equal(seen, true)
  end,
  ["a failure gives the lock back"] = function()
    local ok, failure = pcall(write_lock.with, error, "on purpose")
    check.equal(ok, false)
    check.equal(failure, "on purpose")
    check.equal(write_lock.with(same, "next"), "next")
  end,
}
