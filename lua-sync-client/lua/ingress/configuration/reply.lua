-- Answers of the status port.

local cjson = require("cjson")

local HTTP_INSUFFICIENT_STORAGE = 507

local _M = {}

-- `body` as it is.
function _M.raw(status, content_type, body)
  ngx.status = status
  ngx.header["Content-Type"] = content_type
  ngx.header["Content-Length"] = #body
  ngx.print(body)
end

-- One line of text.
function _M.text(status, line)
  return _M.raw(status, "text/plain", line .. "\n")
end

function _M.created()
  return _M.raw(ngx.HTTP_CREATED, "text/plain", "")
end

function _M.json(status, object)
  return _M.raw(status, "application/json", cjson.encode(object))
end

-- A whole number as JSON; the encoder would round one of more than 14 digits.
function _M.integer(number)
  return ("%.0f"):format(number)
end

function _M.revision(status, revision)
  return _M.raw(status, "application/json", '{"revision":' .. _M.integer(revision) .. "}")
end

-- An update did not happen: `failure` is what `ingress.write_lock`, the list's checks or a commit gave as the reason.
-- `full_status` replaces 507 for a dictionary without room.
function _M.failure(failure, full_status)
  if failure == "busy" then
    return _M.text(ngx.HTTP_SERVICE_UNAVAILABLE, "another update is running")
  elseif failure.invalid then
    return _M.text(ngx.HTTP_BAD_REQUEST, failure.invalid)
  elseif failure.conflict then
    return _M.revision(ngx.HTTP_CONFLICT, failure.conflict)
  end
  local text = "dictionary " .. failure.dictionary .. " is full"
  ngx.log(ngx.ERR, text, ": ", failure.cause, ", needed about ", failure.needed, " bytes of ", failure.capacity)
  return _M.json(full_status or HTTP_INSUFFICIENT_STORAGE, {
    error = text,
    dictionary = failure.dictionary,
    needed = failure.needed,
    capacity = failure.capacity,
  })
end

return _M
