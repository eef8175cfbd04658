-- Request figures for the controller's metrics: collected in the log phase, sent each second over a unix socket.
--
-- A record is written as JSON at once, from values that NGINX gives as text anyway: encoding a whole second's records
-- in one go would hold up the requests of that moment.

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
-- Texts whose quoted form is kept; hosts are whatever clients send, so there must be a limit.
local QUOTED_CAPACITY = 10000

local _M = {}

local buffer = {}
local count, dropped, scheduled = 0, 0, false
local quoted, quoted_count = {}, 0

local function quote(text)
  text = text or "-"
  local known = quoted[text]
  if not known then
    known = encode(text)
    if quoted_count >= QUOTED_CAPACITY then
      quoted, quoted_count = {}, 0
    end
    quoted[text] = known
    quoted_count = quoted_count + 1
  end
  return known
end

-- Not a number: nothing was measured, or a retried request has several values.
local function number(text)
  return tonumber(text) and text or "-1"
end

local function record()
  return '{"host":' .. quote(var.host)
    .. ',"namespace":' .. quote(var.namespace)
    .. ',"ingress":' .. quote(var.ingress_name)
    .. ',"service":' .. quote(var.service_name)
    .. ',"canary":' .. quote(var.proxy_alternative_upstream_name)
    .. ',"path":' .. quote(var.location_path)
    .. ',"method":' .. quote(var.request_method)
    .. ',"status":' .. quote(var.status)
    .. ',"requestLength":' .. number(var.request_length)
    .. ',"requestTime":' .. number(var.request_time)
    .. ',"responseLength":' .. number(var.bytes_sent)
    .. ',"upstreamLatency":' .. number(var.upstream_connect_time)
    .. ',"upstreamHeaderTime":' .. number(var.upstream_header_time)
    .. ',"upstreamResponseTime":' .. number(var.upstream_response_time)
    .. ',"upstreamResponseLength":' .. number(var.upstream_response_length)
    .. "}"
end

-- Returns true, or nil and an error.
local function send(records)
  local socket = ngx.socket.tcp()
  socket:settimeout(SOCKET_TIMEOUT_MS)
  local ok, err = socket:connect("unix:" .. config.metrics_socket)
  if ok then
    ok, err = socket:send({ "[", concat(records, ","), "]" })
    socket:close()
  end
  return ok, err
end

local function flush()
  local records, lost = buffer, dropped
  buffer, count, dropped, scheduled = {}, 0, 0, false
  if lost > 0 then
    ngx.log(ngx.WARN, "metrics of ", lost, " requests were dropped, ", #records, " are the most for a flush")
  end
  local ok, err = send(records)
  if not ok then
    ngx.log(ngx.WARN, "sending the metrics of ", #records, " requests: ", err)
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
  buffer[count] = record()
  if not scheduled then
    scheduled = ngx.timer.at(FLUSH_INTERVAL, flush) or false
  end
end

return _M
