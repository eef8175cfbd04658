-- Follows the addresses behind ExternalName backends.
--
-- Resolution runs in timers: at once when a worker first sees the backend, then whenever the shortest TTL has passed.
-- Only a request that comes before the first answer waits for it. While DNS fails, the last answer stays.

local resolver = require("ingress.dns.resolver")
local semaphore = require("ngx.semaphore")

local ipairs = ipairs
local type = type

-- Seconds.
local FIRST_ANSWER_PATIENCE = 5
local RETRY_MIN, RETRY_MAX = 1, 30

local _M = {}

local function targets_of(endpoints)
  local targets, names = {}, {}
  for _, endpoint in ipairs(type(endpoints) == "table" and endpoints or {}) do
    if type(endpoint) == "table" and type(endpoint.address) == "string" then
      targets[#targets + 1] = { name = endpoint.address, port = endpoint.port }
      names[#names + 1] = endpoint.address .. " " .. tostring(endpoint.port)
    end
  end
  return targets, table.concat(names, "\n")
end

-- Resolves every target. Returns seconds until the next look, nil for never.
local function look(resolution)
  local endpoints, next_look, failed = {}, nil, false
  for _, target in ipairs(resolution.targets) do
    local addresses, ttl_or_err = resolver.resolve(target.name)
    if addresses then
      target.addresses = addresses
      if ttl_or_err and (not next_look or ttl_or_err < next_look) then
        next_look = ttl_or_err
      end
    else
      failed = true
      ngx.log(ngx.ERR, "resolving external name ", target.name, ": ", ttl_or_err)
    end
    for _, literal in ipairs(target.addresses or {}) do
      endpoints[#endpoints + 1] = { address = literal, port = target.port }
    end
  end
  resolution.endpoints = endpoints
  if not failed then
    resolution.retry = RETRY_MIN
    return next_look
  end
  local retry = resolution.retry
  resolution.retry = math.min(retry * 2, RETRY_MAX)
  return math.min(next_look or retry, retry)
end

local function schedule(resolution, delay)
  local ok, err = ngx.timer.at(delay, function(premature)
    if premature or resolution.forgotten then
      return
    end
    local next_look = look(resolution)
    if not resolution.forgotten then
      resolution.on_change(resolution.endpoints)
    end
    resolution.answered = true
    local waiting = -resolution.first_answer:count()
    if waiting > 0 then
      resolution.first_answer:post(waiting)
    end
    if next_look and not resolution.forgotten then
      schedule(resolution, next_look)
    end
  end)
  if not ok then
    ngx.log(ngx.ERR, "scheduling the resolution of an external name: ", err)
  end
end

-- Follows the names in `endpoints` and calls `on_change(endpoints)` with their addresses after each look.
-- `resolution`, what an earlier call returned, is kept when the names are the same.
function _M.follow(resolution, endpoints, on_change)
  local targets, signature = targets_of(endpoints)
  if resolution and resolution.signature == signature then
    resolution.on_change = on_change
    return resolution
  end
  _M.forget(resolution)
  resolution = {
    targets = targets,
    signature = signature,
    on_change = on_change,
    endpoints = {},
    retry = RETRY_MIN,
    first_answer = assert(semaphore.new(0)),
  }
  schedule(resolution, 0)
  return resolution
end

-- Ends what `follow` began.
function _M.forget(resolution)
  if resolution then
    resolution.forgotten = true
  end
  return nil
end

-- The endpoints of the last answer.
function _M.endpoints(resolution)
  return resolution.endpoints
end

-- Waits until the names have been looked up once, whatever the outcome. Yields.
function _M.wait(resolution)
  if not resolution.answered then
    resolution.first_answer:wait(FIRST_ANSWER_PATIENCE)
  end
end

return _M
