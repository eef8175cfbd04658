-- Identifiers of requests, as NGINX's $request_id: 16 random bytes in hexadecimal.
--
-- From the same generator, but for many requests at once: for each one alone it costs more than all of the balancing.

local ffi = require("ffi")

local ffi_string = ffi.string
local sub = string.sub

ffi.cdef([[
int RAND_bytes(unsigned char *buf, int num);
]])

local DIGITS = 32
-- Identifiers made at once.
local COUNT = 256
local BYTES = COUNT * DIGITS / 2
local HEX = ffi.new("const char[17]", "0123456789abcdef")

local _M = {}

local bytes = ffi.new("unsigned char[?]", BYTES)
local text = ffi.new("char[?]", 2 * BYTES)
local stock, used = "", 0

local function refill()
  if ffi.C.RAND_bytes(bytes, BYTES) ~= 1 then
    return false
  end
  for index = 0, BYTES - 1 do
    local byte = bytes[index]
    text[2 * index] = HEX[byte / 16]
    text[2 * index + 1] = HEX[byte % 16]
  end
  stock, used = ffi_string(text, 2 * BYTES), 0
  return true
end

-- A new identifier; nil when there is no randomness.
function _M.next()
  if used >= #stock and not refill() then
    return nil
  end
  used = used + DIGITS
  return sub(stock, used - DIGITS + 1, used)
end

return _M
