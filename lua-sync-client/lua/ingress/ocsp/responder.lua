-- Asks an OCSP responder over HTTP (RFC 6960 appendix A.1). Yields.
--
-- The address comes out of a certificate, so nothing of it may end a line of the request.

local address = require("ingress.address")
local resolver = require("ingress.dns.resolver")

local lower = string.lower
local match = string.match

-- Milliseconds.
local CONNECT_TIMEOUT, SEND_TIMEOUT, READ_TIMEOUT = 1000, 1000, 2000
-- Bytes. A response with the certificate of who signed it takes about 2,000.
local LONGEST_RESPONSE = 65536
local MOST_HEADERS = 100

local _M = {}

-- Returns host, port and path of an http URL; or nil.
function _M.parse(url)
  local authority, path = match(url, "^[hH][tT][tT][pP]://([^/?#%s%c]+)([^#%s%c]*)$")
  if not authority then
    return nil
  end
  local host, port = match(authority, "^(%[[%x:.]+%]):?(%d*)$")
  if not host then
    host, port = match(authority, "^([%w._-]+):?(%d*)$")
  end
  port = port == "" and 80 or tonumber(port)
  if not host or not port or port < 1 or port > 65535 then
    return nil
  end
  if path:sub(1, 1) ~= "/" then
    path = "/" .. path
  end
  return host, port, path
end

local function connect(host, port)
  local addresses, err = resolver.resolve((host:gsub("[%[%]]", "")))
  if not addresses then
    return nil, "resolving " .. host .. ": " .. tostring(err)
  end
  local literal, family = address.parse(addresses[1])
  if not literal then
    return nil, host .. " has no usable address"
  end
  local socket = ngx.socket.tcp()
  socket:settimeouts(CONNECT_TIMEOUT, SEND_TIMEOUT, READ_TIMEOUT)
  local ok
  ok, err = socket:connect(family == 6 and "[" .. literal .. "]" or literal, port)
  if not ok then
    return nil, "connecting: " .. tostring(err)
  end
  return socket
end

-- Reads the head of an answer. Returns its Content-Length, or nil and an error.
local function read_head(socket)
  local line, err = socket:receive("*l")
  if not line then
    return nil, "reading: " .. tostring(err)
  elseif not match(line, "^HTTP/1%.%d 200") then
    return nil, "it answered " .. line:sub(1, 80)
  end
  local length
  for _ = 1, MOST_HEADERS do
    line, err = socket:receive("*l")
    if not line then
      return nil, "reading: " .. tostring(err)
    elseif line == "" then
      return length or LONGEST_RESPONSE
    end
    local name, value = match(line, "^([^:]+):%s*(.-)%s*$")
    if name and lower(name) == "content-length" then
      length = tonumber(value)
      if not length or length < 1 or length > LONGEST_RESPONSE then
        return nil, "its answer is of a length that cannot be used: " .. value:sub(1, 20)
      end
    end
  end
  return nil, "its answer has too many headers"
end

-- Without a length, the answer ends where the connection does.
local function read_answer(socket)
  local length, err = read_head(socket)
  if not length then
    return nil, err
  end
  local body, partial
  body, err, partial = socket:receive(length)
  if not body and err == "closed" and length == LONGEST_RESPONSE and partial ~= "" then
    return partial
  end
  return body, err
end

-- Sends `request` (DER) to the responder at `url`. Returns its answer; or nil and an error.
function _M.ask(url, request)
  local host, port, path = _M.parse(url)
  if not host then
    return nil, "not an http URL"
  end
  local socket, err = connect(host, port)
  if not socket then
    return nil, err
  end
  local ok, answer
  -- An answer to HTTP/1.0 does not come in chunks.
  ok, err = socket:send({
    "POST ", path, " HTTP/1.0\r\nHost: ", host, port == 80 and "" or ":" .. port,
    "\r\nContent-Type: application/ocsp-request\r\nConnection: close\r\nContent-Length: ", #request, "\r\n\r\n",
    request,
  })
  if ok then
    answer, err = read_answer(socket)
  end
  socket:close()
  return answer, err
end

return _M
