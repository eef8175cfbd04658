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

local _M = {}

local bytes = ffi.new("unsigned char[?]", BYTES)
local text = ffi.new("uint16_t[?]", BYTES)
-- The two digits of each byte, in one number.
local digits_of = ffi.new("uint16_t[256]")
for byte = 0, 255 do
  ffi.copy(digits_of + byte, string.format("%02x", byte), 2)
end
local stock, used = "", 0

local function refill()
  if ffi.C.RAND_bytes(bytes, BYTES) ~= 1 then
    return false
  end
  for index = 0, BYTES - 1 do
    text[index] = digits_of[bytes[index]]
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
