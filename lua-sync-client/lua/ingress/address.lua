-- IP addresses: strict parsing, the text NGINX itself prints for them, and which of them lead back to this host.

local ffi = require("ffi")

local C = ffi.C
local ffi_string = ffi.string
local find = string.find

ffi.cdef([[
int inet_pton(int af, const char *src, void *dst);
const char *inet_ntop(int af, const void *src, char *dst, unsigned int size);
]])

local AF_INET = 2
local AF_INET6 = ffi.os == "Linux" and 10 or (ffi.os == "OSX" and 30 or 28)
local TEXT_SIZE = 64

local binary = ffi.new("uint8_t[16]")
local text = ffi.new("char[?]", TEXT_SIZE)

local _M = {}

local function leads_back_v4(offset)
  return binary[offset] == 127 or binary[offset] == 0
end

local function leads_back_v6()
  for index = 0, 9 do
    if binary[index] ~= 0 then
      return false
    end
  end
  if binary[10] == 255 and binary[11] == 255 then
    return leads_back_v4(12)
  end
  for index = 10, 14 do
    if binary[index] ~= 0 then
      return false
    end
  end
  return binary[15] <= 1
end

-- Returns the canonical text of the literal `address`, its family (4 or 6) and whether a connection to it stays on
-- this host (loopback or unspecified, also when mapped into IPv6). Returns nil when it is not an IP literal.
function _M.parse(address)
  if find(address, "%z") then
    return nil
  elseif C.inet_pton(AF_INET, address, binary) == 1 then
    return address, 4, leads_back_v4(0)
  elseif C.inet_pton(AF_INET6, address, binary) == 1 then
    C.inet_ntop(AF_INET6, binary, text, TEXT_SIZE)
    return ffi_string(text), 6, leads_back_v6()
  end
  return nil
end

-- The text of 4 or 16 bytes in network order; nil for any other length.
function _M.from_bytes(bytes)
  local family = (#bytes == 4 and AF_INET) or (#bytes == 16 and AF_INET6) or nil
  if not family then
    return nil
  end
  C.inet_ntop(family, ffi.cast("const void *", bytes), text, TEXT_SIZE)
  return ffi_string(text)
end

return _M
