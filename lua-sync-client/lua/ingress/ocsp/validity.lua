-- Until when an OCSP response holds (RFC 6960 §4.2.1), read from its DER form. Only for responses whose form has been
-- checked already: what is not as expected is passed over, not reported.

local byte = string.byte
local floor = math.floor
local match = string.match
local sub = string.sub

local SEQUENCE, OCTET_STRING, GENERALIZED_TIME = 0x30, 0x04, 0x18
-- [0], with something else in it.
local CONTEXT_0 = 0xa0

local _M = {}

-- The tag of the element at `at`, and where its contents begin and end; nil when there is none.
local function element(der, at)
  local tag, length = byte(der, at, at + 1)
  if not length then
    return nil
  end
  local first = at + 2
  if length > 0x80 then
    local count = length - 0x80
    length = 0
    for index = first, first + count - 1 do
      length = length * 256 + (byte(der, index) or 0)
    end
    first = first + count
  end
  local last = first + length - 1
  if last > #der then
    return nil
  end
  return tag, first, last
end

-- The elements with this tag among those of the contents from `first` to `last`: a list of { first, last }.
local function children(der, tag, first, last)
  local found, at = {}, first
  while at <= last do
    local child, from, to = element(der, at)
    if not child then
      break
    end
    if child == tag then
      found[#found + 1] = { from, to }
    end
    at = to + 1
  end
  return found
end

-- The contents at the end of a path of tags, each time the last element of its kind.
local function follow(der, path)
  local place = { 1, #der }
  for _, tag in ipairs(path) do
    local found = children(der, tag, place[1], place[2])
    place = found[#found]
    if not place then
      return nil
    end
  end
  return place
end

-- Days since 1970 of a day of the Gregorian calendar.
local function days(year, month, day)
  if month <= 2 then
    year, month = year - 1, month + 12
  end
  return 365 * year + floor(year / 4) - floor(year / 100) + floor(year / 400) + floor((153 * (month - 3) + 2) / 5) + day
    - 719469
end

-- Seconds since 1970.
local function seconds(text)
  local year, month, day, hour, minute, second = match(text, "^(%d%d%d%d)(%d%d)(%d%d)(%d%d)(%d%d)(%d%d)Z$")
  if not year then
    return nil
  end
  return days(tonumber(year), tonumber(month), tonumber(day)) * 86400 + hour * 3600 + minute * 60 + second
end

-- The earliest `nextUpdate` of a response in DER, in seconds since 1970; nil when it has none.
function _M.ends(der)
  -- OCSPResponse: status, [0] { SEQUENCE { type, OCTET STRING } }
  local octets = follow(der, { SEQUENCE, CONTEXT_0, SEQUENCE, OCTET_STRING })
  if not octets then
    return nil
  end
  local basic = sub(der, octets[1], octets[2])
  -- BasicOCSPResponse: the signed data is the first SEQUENCE, its responses are the last one in it.
  local outer = follow(basic, { SEQUENCE })
  local data = outer and children(basic, SEQUENCE, outer[1], outer[2])[1]
  local lists = data and children(basic, SEQUENCE, data[1], data[2])
  local list = lists and lists[#lists]
  if not list then
    return nil
  end
  local earliest
  for _, single in ipairs(children(basic, SEQUENCE, list[1], list[2])) do
    for _, wrapped in ipairs(children(basic, CONTEXT_0, single[1], single[2])) do
      local tag, first, last = element(basic, wrapped[1])
      local time = tag == GENERALIZED_TIME and seconds(sub(basic, first, last))
      if time and (not earliest or time < earliest) then
        earliest = time
      end
    end
  end
  return earliest
end

return _M
