-- Asks name servers: over UDP, and again over TCP when the answer was cut off. May yield.

local message = require("ingress.dns.message")

local random = math.random
local tcp = ngx.socket.tcp
local udp = ngx.socket.udp

local TIMEOUT_MS = 2000
local ROUNDS = 2
local RCODE_OK, RCODE_NO_SUCH_NAME = 0, 3

local _M = {}

local function ask_udp(server, question)
  local socket = udp()
  socket:settimeout(TIMEOUT_MS)
  local ok, err = socket:setpeername(server.host, server.port)
  if not ok then
    return nil, err
  end
  local answer
  ok, err = socket:send(question)
  while ok do
    local packet
    packet, err = socket:receive(4096)
    if not packet then
      break
    end
    -- A stray or forged packet is no reason to give up on the real answer.
    answer, err = message.answer(packet, question)
    if answer then
      break
    end
  end
  socket:close()
  return answer, err
end

local function ask_tcp(server, question)
  local socket = tcp()
  socket:settimeout(TIMEOUT_MS)
  local ok, err = socket:connect(server.host, server.port)
  if not ok then
    return nil, err
  end
  local packet
  ok, err = socket:send(string.char(math.floor(#question / 256), #question % 256) .. question)
  if ok then
    packet, err = socket:receive(2)
    if packet then
      local high, low = packet:byte(1, 2)
      packet, err = socket:receive(high * 256 + low)
    end
  end
  socket:close()
  if not packet then
    return nil, err
  end
  return message.answer(packet, question)
end

local function ask(server, name, record_type)
  local question, err = message.question(random(0, 65535), name, record_type)
  if not question then
    return nil, err
  end
  local answer
  answer, err = ask_udp(server, question)
  if answer and answer.truncated then
    answer, err = ask_tcp(server, question)
  end
  if answer and answer.rcode ~= RCODE_OK and answer.rcode ~= RCODE_NO_SUCH_NAME then
    return nil, "response code " .. answer.rcode
  end
  return answer, err
end

-- The first usable answer of `servers` for `name` and a record type of `ingress.dns.message`; or nil and an error.
-- An answer without addresses is one too.
function _M.query(servers, name, record_type)
  local last = "no name server is configured"
  for _ = 1, ROUNDS do
    for _, server in ipairs(servers) do
      local answer, err = ask(server, name, record_type)
      if answer then
        return answer
      end
      last = "asking " .. server.host .. ":" .. server.port .. ": " .. tostring(err)
    end
  end
  return nil, last
end

return _M
