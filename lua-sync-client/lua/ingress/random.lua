-- Randomness that differs between workers: they are forked from one master and would otherwise draw alike.

local floor = math.floor
local format = string.format

local _M = {}

local function bytes(count)
  local file = io.open("/dev/urandom", "rb")
  local text = file and file:read(count)
  if file then
    file:close()
  end
  return text
end

-- An identifier of 16 hexadecimal digits.
function _M.identifier()
  local text = bytes(8)
  if text then
    return (text:gsub(".", function(byte)
      return format("%02x", byte:byte())
    end))
  end
  return format("%08x%08x", floor(ngx.now() * 1000) % 0x100000000, ngx.worker.pid() or 0)
end

-- Seeds `math.random` of this process.
function _M.seed()
  local seed = 0
  local text = bytes(6)
  if text then
    for index = 1, #text do
      seed = seed * 256 + text:byte(index)
    end
  else
    seed = ngx.now() * 1000 + ngx.worker.pid() * 65537
  end
  math.randomseed(seed)
end

return _M
