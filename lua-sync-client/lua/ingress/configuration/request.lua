-- What the status port's handlers read from a request.

local cjson = require("cjson")

local floor = math.floor
local tonumber = tonumber
local type = type

-- Beyond it a number in JSON is not exact.
local MAX_REVISION = 2 ^ 53

local _M = {}

-- The body, also when NGINX has put it into a temporary file; or nil and an error.
function _M.body()
  ngx.req.read_body()
  local body = ngx.req.get_body_data()
  if body then
    return body
  end
  local path = ngx.req.get_body_file()
  if not path then
    return nil, "the request has no body"
  end
  local file, err = io.open(path, "rb")
  if not file then
    return nil, "reading the request body: " .. err
  end
  body = file:read("*a")
  file:close()
  return body
end

-- A revision number, nil when `value` is none.
function _M.revision(value)
  local number = tonumber(value)
  if number and number >= 0 and number <= MAX_REVISION and number == floor(number) then
    return number
  end
  return nil
end

-- The revision in the X-Revision header: 0 ("unknown") without one; nil and an error for a bad one.
function _M.revision_header()
  local header = ngx.var.http_x_revision
  if not header then
    return 0
  end
  local revision = _M.revision(header)
  if not revision then
    return nil, "X-Revision is not a whole number"
  end
  return revision, nil, true
end

-- The member `name` of `document` if it is a table or missing (then an empty one); or nil and an error.
function _M.table_member(document, name)
  local value = document[name]
  if value == nil or value == cjson.null then
    return {}
  elseif type(value) == "table" then
    return value
  end
  return nil, name .. " has the wrong type"
end

-- The same for an array of strings.
function _M.strings_member(document, name)
  local values, err = _M.table_member(document, name)
  for key, value in pairs(values or {}) do
    if type(key) ~= "number" or type(value) ~= "string" then
      return nil, name .. " is not an array of strings"
    end
  end
  return values, err
end

-- The same for an object whose members are strings.
function _M.object_member(document, name)
  local values, err = _M.table_member(document, name)
  for key, value in pairs(values or {}) do
    if type(key) ~= "string" or type(value) ~= "string" then
      return nil, name .. " is not an object of strings"
    end
  end
  return values, err
end

-- Decodes the body of a PATCH. Returns the document, with `base` and `revision` checked, and its text; or nil and an
-- error.
function _M.patch()
  local body, err = _M.body()
  if not body then
    return nil, err
  end
  local ok, document = pcall(cjson.decode, body)
  if not ok or type(document) ~= "table" then
    return nil, "the body is not a JSON object"
  end
  if type(document.revision) ~= "number" or not _M.revision(document.revision) then
    return nil, "revision is not a whole number"
  end
  if document.base == cjson.null then
    document.base = nil
  elseif document.base ~= nil and (type(document.base) ~= "number" or not _M.revision(document.base)) then
    return nil, "base is not a whole number"
  end
  return document, body
end

return _M
