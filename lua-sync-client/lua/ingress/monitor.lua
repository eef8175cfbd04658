-- Request figures for the controller's metrics: collected in the log phase, sent each second over a unix socket.
--
-- NGINX writes a record itself, the variable $request_record: read at once it costs a fifth of what its fourteen parts
-- do, and workers need not know what is in it. A report is a line for each record and a last one, "dropped N": what the
-- controller has read of a report that could not be sent as a whole counts for nothing, since it is counted here.

local config = require("ingress.config")

local concat = table.concat
local max = math.max
local var = ngx.var

-- Seconds.
local FLUSH_INTERVAL = 1
local SOCKET_TIMEOUT_MS = 1000
local MIN_CAPACITY = 10000
-- The controller reads twice of that. A client may name hosts of several thousand bytes.
local MAX_BYTES = 16 * 1024 * 1024

local _M = {}

local records, count, bytes, dropped, scheduled = {}, 0, 0, 0, false

-- Returns true, or nil and an error.
local function send(lines, lost)
  local socket = ngx.socket.tcp()
  socket:settimeout(SOCKET_TIMEOUT_MS)
  local ok, err = socket:connect("unix:" .. config.metrics_socket)
  if ok then
    ok, err = socket:send({ concat(lines, "\n"), "\ndropped ", lost, "\n" })
    socket:close()
  end
  return ok, err
end

local function flush()
  local lines, lost = records, dropped
  records, count, bytes, dropped, scheduled = {}, 0, 0, 0, false
  local ok, err = send(lines, lost)
  if not ok then
    dropped = dropped + lost + #lines
    ngx.log(ngx.WARN, "sending the metrics of ", #lines, " requests: ", err)
  elseif lost > 0 then
    ngx.log(ngx.WARN, "metrics of ", lost, " requests were dropped since the last report that could be sent")
  end
end

-- log_by_lua
function _M.log()
  if not config.enable_metrics then
    return
  end
  if bytes >= MAX_BYTES or count >= max(MIN_CAPACITY, config.monitor_batch_max_size) then
    dropped = dropped + 1
    return
  end
  local record = var.request_record
  count, bytes = count + 1, bytes + #record
  records[count] = record
  if not scheduled then
    scheduled = ngx.timer.at(FLUSH_INTERVAL, flush) or false
  end
end

return _M
