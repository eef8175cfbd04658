-- DNS messages (RFC 1035): encodes a question, decodes the addresses of an answer.

local address = require("ingress.address")
local bit = require("bit")

local band = bit.band
local byte = string.byte
local char = string.char
local rshift = bit.rshift
local sub = string.sub

local CLASS_IN = 1
local HEADER_SIZE = 12
local MAX_LABEL, MAX_NAME = 63, 253
local FLAG_RESPONSE, FLAG_TRUNCATED = 0x8000, 0x0200

local _M = { A = 1, AAAA = 28 }

local function uint16(number)
  return char(rshift(number, 8), band(number, 255))
end

local function read16(message, position)
  local high, low = byte(message, position, position + 1)
  return low and high * 256 + low or nil
end

local function encode_name(name)
  if name == "" or #name > MAX_NAME then
    return nil
  end
  local labels = {}
  for label in (name .. "."):gmatch("([^.]*)%.") do
    if label == "" or #label > MAX_LABEL then
      return nil
    end
    labels[#labels + 1] = char(#label) .. label
  end
  return table.concat(labels) .. "\0"
end

-- A recursive question with identifier `id` (16 bits) for `name` (no final dot); nil and an error for a bad name.
function _M.question(id, name, record_type)
  local encoded = encode_name(name)
  if not encoded then
    return nil, "not a domain name: " .. name
  end
  return uint16(id) .. "\1\0\0\1\0\0\0\0\0\0" .. encoded .. uint16(record_type) .. uint16(CLASS_IN)
end

-- Returns the position past the name at `position`, nil when the message ends within it.
local function skip_name(message, position)
  while true do
    local length = byte(message, position)
    if not length then
      return nil
    elseif length == 0 then
      return position + 1
    elseif length >= 0xc0 then
      return position + 2
    end
    position = position + 1 + length
  end
end

local function read_record(message, position)
  position = skip_name(message, position)
  local length = position and read16(message, position + 8)
  if not length then
    return nil
  end
  local record_type, class = read16(message, position), read16(message, position + 2)
  local a, b, c, d = byte(message, position + 4, position + 7)
  local data = sub(message, position + 10, position + 9 + length)
  if #data < length then
    return nil
  end
  local ttl = ((a * 256 + b) * 256 + c) * 256 + d
  -- RFC 2181: a TTL with the top bit set counts as zero.
  return { type = record_type, class = class, ttl = a >= 128 and 0 or ttl, data = data }, position + 10 + length
end

-- Decodes the answer to `question`. Returns { rcode, truncated, addresses, ttl }, where `addresses` has those of the
-- type asked for and `ttl` is the least of the answer's records; or nil and an error.
function _M.answer(message, question)
  local flags = read16(message, 3)
  if #message < HEADER_SIZE or sub(message, 1, 2) ~= sub(question, 1, 2) or band(flags, FLAG_RESPONSE) == 0 then
    return nil, "not an answer to the question"
  end
  local asked = sub(question, HEADER_SIZE + 1)
  -- Servers may not keep the case of the name.
  if read16(message, 5) ~= 1 or sub(message, HEADER_SIZE + 1, HEADER_SIZE + #asked):lower() ~= asked:lower() then
    return nil, "the answer is to another question"
  end
  local result = { rcode = band(flags, 15), truncated = band(flags, FLAG_TRUNCATED) ~= 0, addresses = {} }
  if result.truncated then
    return result
  end
  local record_type = read16(asked, #asked - 3)
  local position = HEADER_SIZE + #asked + 1
  for _ = 1, read16(message, 7) do
    local record
    record, position = read_record(message, position)
    if not record then
      return nil, "the answer is cut short"
    end
    result.ttl = math.min(result.ttl or record.ttl, record.ttl)
    if record.type == record_type and record.class == CLASS_IN then
      result.addresses[#result.addresses + 1] = address.from_bytes(record.data)
    end
  end
  return result
end

return _M
