-- Cuts JSON text into the texts of its top-level parts, without decoding them.
--
-- A backend is stored and given back exactly as it was posted: decoding and encoding again would turn [] into {}.
-- Only the outer structure is checked here (strings and brackets are counted); a caller that must know that a part
-- is valid JSON decodes that part.

local ffi = require("ffi")

local cast = ffi.cast
local sub = string.sub

local QUOTE, BACKSLASH, COMMA, COLON = 34, 92, 44, 58
local OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE = 91, 93, 123, 125

local _M = {}

-- All positions are zero based. `length` is the first position past the text.

local function skip_space(bytes, position, length)
  while position < length do
    local byte = bytes[position]
    if byte ~= 32 and byte ~= 10 and byte ~= 13 and byte ~= 9 then
      break
    end
    position = position + 1
  end
  return position
end

-- `position` is that of the opening quote. Returns the position past the closing one, or nil.
local function skip_string(bytes, position, length)
  position = position + 1
  while position < length do
    local byte = bytes[position]
    if byte == QUOTE then
      return position + 1
    elseif byte == BACKSLASH then
      position = position + 2
    else
      position = position + 1
    end
  end
  return nil
end

local function skip_nested(bytes, position, length)
  local depth = 0
  while position < length do
    local byte = bytes[position]
    if byte == QUOTE then
      position = skip_string(bytes, position, length)
      if not position then
        return nil
      end
    else
      position = position + 1
      if byte == OPEN_BRACE or byte == OPEN_BRACKET then
        depth = depth + 1
      elseif byte == CLOSE_BRACE or byte == CLOSE_BRACKET then
        depth = depth - 1
        if depth == 0 then
          return position
        end
      end
    end
  end
  return nil
end

local function skip_scalar(bytes, position, length)
  local start = position
  while position < length do
    local byte = bytes[position]
    if byte <= 32 or byte == COMMA or byte == CLOSE_BRACE or byte == CLOSE_BRACKET or byte == COLON then
      break
    end
    position = position + 1
  end
  return position > start and position or nil
end

local function skip_value(bytes, position, length)
  if position >= length then
    return nil
  end
  local byte = bytes[position]
  if byte == QUOTE then
    return skip_string(bytes, position, length)
  elseif byte == OPEN_BRACE or byte == OPEN_BRACKET then
    return skip_nested(bytes, position, length)
  end
  return skip_scalar(bytes, position, length)
end

-- Walks the parts between `open` and `close` and gives each to `take(position)`, which returns the position past it.
local function walk(bytes, length, open, close, take)
  local position = skip_space(bytes, 0, length)
  if position >= length or bytes[position] ~= open then
    return nil, position
  end
  position = skip_space(bytes, position + 1, length)
  if position < length and bytes[position] == close then
    position = skip_space(bytes, position + 1, length)
    return position == length or nil, position
  end
  while true do
    local past = take(position)
    if not past then
      return nil, position
    end
    position = skip_space(bytes, past, length)
    if position >= length then
      return nil, position
    end
    local byte = bytes[position]
    position = skip_space(bytes, position + 1, length)
    if byte == close then
      return position == length or nil, position
    elseif byte ~= COMMA then
      return nil, position - 1
    end
  end
end

local function fail(what, position)
  return nil, "not a JSON " .. what .. " (at byte " .. position .. ")"
end

-- The texts of the elements of the array `text`, in order; or nil and an error.
function _M.elements(text)
  local bytes, length = cast("const uint8_t *", text), #text
  local parts, count = {}, 0
  local ok, position = walk(bytes, length, OPEN_BRACKET, CLOSE_BRACKET, function(start)
    local past = skip_value(bytes, start, length)
    if past then
      count = count + 1
      parts[count] = sub(text, start + 1, past)
    end
    return past
  end)
  if not ok then
    return fail("array", position)
  end
  return parts
end

-- The texts of the members of the object `text` by name (as written, escapes are not decoded); or nil and an error.
function _M.members(text)
  local bytes, length = cast("const uint8_t *", text), #text
  local parts = {}
  local ok, position = walk(bytes, length, OPEN_BRACE, CLOSE_BRACE, function(start)
    if bytes[start] ~= QUOTE then
      return nil
    end
    local past_name = skip_string(bytes, start, length)
    if not past_name then
      return nil
    end
    local colon = skip_space(bytes, past_name, length)
    if colon >= length or bytes[colon] ~= COLON then
      return nil
    end
    local value = skip_space(bytes, colon + 1, length)
    local past = skip_value(bytes, value, length)
    if past then
      parts[sub(text, start + 2, past_name - 1)] = sub(text, value + 1, past)
    end
    return past
  end)
  if not ok then
    return fail("object", position)
  end
  return parts
end

return _M
