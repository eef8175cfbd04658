-- Runs the unit tests of a file *_test.lua inside NGINX, and compares values for them.
--
-- A test file returns a table: name of the test → function. The answer is "ok N", or one line per failure.

local concat = table.concat
local type = type

local _M = {}

local function show(value)
  if type(value) ~= "table" then
    return type(value) == "string" and ("%q"):format(value) or tostring(value)
  end
  local keys = {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(left, right)
    return tostring(left) < tostring(right)
  end)
  local parts = {}
  for index, key in ipairs(keys) do
    parts[index] = tostring(key) .. " = " .. show(value[key])
  end
  return "{ " .. concat(parts, ", ") .. " }"
end

-- Fails the test unless both values (tables by their contents) are the same.
function _M.equal(actual, expected, what)
  local seen, wanted = show(actual), show(expected)
  if seen ~= wanted then
    error((what and what .. ": " or "") .. "expected " .. wanted .. ", found " .. seen, 2)
  end
end

-- Fails the test unless `value` is nil or false and `message` contains `part`.
function _M.failure(value, message, part)
  if value then
    error("expected a failure, found " .. show(value), 2)
  elseif not tostring(message):find(part, 1, true) then
    error("expected an error with " .. show(part) .. ", found " .. show(message), 2)
  end
end

-- content_by_lua: runs the test file `name`.
function _M.run(name)
  if not name or not name:find("^[%w_]+_test$") then
    return ngx.exit(ngx.HTTP_BAD_REQUEST)
  end
  local tests = require(name)
  local names, failures = {}, {}
  for test in pairs(tests) do
    names[#names + 1] = test
  end
  table.sort(names)
  for _, test in ipairs(names) do
    local ok, err = xpcall(tests[test], debug.traceback)
    if not ok then
      failures[#failures + 1] = "FAILED " .. test .. ": " .. tostring(err)
    end
  end
  if #names == 0 then
    failures[1] = "FAILED: the file has no tests"
  end
  local text = #failures == 0 and "ok " .. #names or concat(failures, "\n")
  ngx.header["Content-Length"] = #text
  ngx.print(text)
end

return _M
