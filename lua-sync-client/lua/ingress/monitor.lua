-- Request figures for the controller's metrics: collected in the log phase, sent each second over a unix socket.
--
-- Records are reused from one second to the next, so that a request costs no memory once the buffer has grown.

local cjson = require("cjson")
local config = require("ingress.config")

local concat = table.concat
local encode = cjson.encode
local max = math.max
local tonumber = tonumber
local var = ngx.var

-- Seconds.
local FLUSH_INTERVAL = 1
local SOCKET_TIMEOUT_MS = 1000
local MIN_CAPACITY = 10000
-- Records encoded before other requests get a turn.
local SLICE = 200

local _M = {}

local buffer, spare = {}, {}
local count, dropped, scheduled = 0, 0, false

local function number(value)
  return tonumber(value) or -1
end

local function fill(record)
  record.host = var.host or "-"
  record.namespace = var.namespace or "-"
  record.ingress = var.ingress_name or "-"
  record.service = var.service_name or "-"
  record.canary = var.proxy_alternative_upstream_name or "-"
  record.path = var.location_path or "-"
  record.method = var.request_method or "-"
  record.status = var.status or "-"
  record.requestLength = number(var.request_length)
  record.requestTime = number(var.request_time)
  record.responseLength = number(var.bytes_sent)
  record.upstreamLatency = number(var.upstream_connect_time)
  record.upstreamHeaderTime = number(var.upstream_header_time)
  record.upstreamResponseTime = number(var.upstream_response_time)
  record.upstreamResponseLength = number(var.upstream_response_length)
end

-- Sends `records[1..length]` as one JSON array. Returns true, or nil and an error.
local function send(records, length)
  local socket = ngx.socket.tcp()
  socket:settimeout(SOCKET_TIMEOUT_MS)
  local ok, err = socket:connect("unix:" .. config.metrics_socket)
  if not ok then
    return nil, err
  end
  local first = 1
  while ok and first <= length do
    local last = math.min(first + SLICE - 1, length)
    local texts = {}
    for index = first, last do
      texts[#texts + 1] = encode(records[index])
    end
    ok, err = socket:send({ first == 1 and "[" or ",", concat(texts, ","), last == length and "]" or "" })
    first = last + 1
    if ok and first <= length then
      ngx.sleep(0)
    end
  end
  socket:close()
  return ok, err
end

local flush

local function schedule()
  scheduled = ngx.timer.at(FLUSH_INTERVAL, flush) or false
end

function flush(premature)
  local records, length, lost = buffer, count, dropped
  buffer, spare = spare, buffer
  count, dropped = 0, 0
  if lost > 0 then
    ngx.log(ngx.WARN, "metrics of ", lost, " requests were dropped, ", length, " are the most for a flush")
  end
  local ok, err = send(records, length)
  if not ok then
    ngx.log(ngx.WARN, "sending the metrics of ", length, " requests: ", err)
  end
  -- Not earlier: until all is sent the records must not be filled anew.
  scheduled = false
  if count > 0 and not premature then
    schedule()
  end
end

-- log_by_lua
function _M.log()
  if not config.enable_metrics then
    return
  end
  if count >= max(MIN_CAPACITY, config.monitor_batch_max_size) then
    dropped = dropped + 1
    return
  end
  count = count + 1
  local record = buffer[count]
  if not record then
    record = {}
    buffer[count] = record
  end
  fill(record)
  if not scheduled then
    schedule()
  end
end

return _M
