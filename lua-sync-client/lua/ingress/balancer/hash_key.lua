-- The text that requests are hashed by: an expression of text and NGINX variables (`upstream-hash-by`).

local concat = table.concat
local find = string.find
local sub = string.sub
local tonumber = tonumber

local _M = {}

-- Variables are named as `ngx.var` takes them: those of digits are captures of the location's expression.
local function variable(name)
  return { variable = tonumber(name) or name:lower() }
end

-- The next part of `expression` from `position` on, or nil, and the position after it.
local function next_part(expression, position)
  local _, last, text = find(expression, "^\\(%$[%w_]+)", position)
  if last then
    return { text = text }, last + 1
  end
  _, last, text = find(expression, "^%${([%w_]+)}", position)
  if not last then
    _, last, text = find(expression, "^%$([%w_]+)", position)
  end
  if last then
    return variable(text), last + 1
  end
  _, last, text = find(expression, "^([^$\\]+)", position)
  if last then
    return { text = text }, last + 1
  elseif sub(expression, position, position) == "$" then
    return { text = "$" }, position + 1
  end
  -- A backslash before anything else means nothing.
  return nil, position + 1
end

-- The parts of `expression`, each { text = … } or { variable = … }. "\$" is a dollar sign, and so is one that no name
-- follows.
function _M.parse(expression)
  local parts, position = {}, 1
  while position <= #expression do
    local part
    part, position = next_part(expression, position)
    parts[#parts + 1] = part
  end
  return parts
end

-- A function that gives the text for the variables of a request (ngx.var). Variables without a value add nothing.
function _M.compile(expression)
  local parts = _M.parse(expression)
  local count = #parts
  local only = count == 1 and parts[1].variable
  if only then
    return function(variables)
      return variables[only] or ""
    end
  end
  return function(variables)
    local texts = {}
    for index = 1, count do
      local part = parts[index]
      texts[index] = part.text or variables[part.variable] or ""
    end
    return concat(texts)
  end
end

return _M
