-- What the rewrite phase found out about the request that its worker looked at last. The balancer phase mostly follows
-- at once, and need not find it out again.

local base = require("resty.core.base")
local ffi = require("ffi")

local cast = ffi.cast
local get_request = base.get_request
local now = ngx.now
local tonumber = tonumber

local ADDRESS = ffi.typeof("uintptr_t")

local _M = {}

local backend, request, at

-- Keeps the backend whose peers are to serve the request at hand.
function _M.remember(found)
  backend, request, at = found, tonumber(cast(ADDRESS, get_request())), now()
end

-- Has to be called before another request may have the memory of the one at hand: that is how it is told apart.
function _M.forget()
  backend = nil
end

-- The backend that was kept for the request at hand: once, and within the same millisecond. Otherwise nil.
function _M.recall()
  local found = backend
  if not found then
    return nil
  end
  backend = nil
  if at ~= now() or request ~= tonumber(cast(ADDRESS, get_request())) then
    return nil
  end
  return found
end

return _M
