-- Resolves host names to addresses as resolv.conf says, with a cache for each worker that honours TTLs. May yield.

local address = require("ingress.address")
local client = require("ingress.dns.client")
local config = require("ingress.config")
local lrucache = require("resty.lrucache")
local message = require("ingress.dns.message")
local resolv_conf = require("ingress.dns.resolv_conf")

local CACHE_SIZE = 10000
-- Seconds; a TTL of 0 must not make a loop without pause, and none may pin an address for longer than a day.
local MIN_TTL, MAX_TTL = 1, 86400

local _M = {}

local cache = assert(lrucache.new(CACHE_SIZE))
local settings

local function load_settings()
  local err
  settings, err = resolv_conf.read(config.resolv_conf)
  if err then
    ngx.log(ngx.ERR, "reading name servers: ", err)
  end
  return settings
end

-- A, and if there is none AAAA. Returns addresses and TTL; or nil and an error.
local function query(servers, name)
  for _, record_type in ipairs({ message.A, message.AAAA }) do
    local answer, err = client.query(servers, name, record_type)
    if not answer then
      return nil, err
    elseif #answer.addresses > 0 then
      -- Name servers take turns in which one they name first; a set of peers is cut from the list in order.
      table.sort(answer.addresses)
      return answer.addresses, answer.ttl
    end
  end
  return nil, "no addresses"
end

-- The addresses of `name` and the seconds they hold, where nil means for good (an address is its own answer); or nil
-- and an error.
function _M.resolve(name)
  local literal = address.parse(name)
  if literal then
    return { literal }
  end
  local known = cache:get(name)
  local left = known and known.expires - ngx.now()
  -- More would be left of it than there ever was if the clock has been put back since.
  if left and left <= known.ttl then
    return known.addresses, math.max(MIN_TTL, left)
  end
  local current = settings or load_settings()
  local failure = "no name to ask for"
  for _, candidate in ipairs(resolv_conf.candidates(current, name)) do
    local addresses, ttl_or_err = query(current.servers, candidate)
    if addresses then
      local ttl = math.min(math.max(ttl_or_err, MIN_TTL), MAX_TTL)
      cache:set(name, { addresses = addresses, expires = ngx.now() + ttl, ttl = ttl }, ttl)
      return addresses, ttl
    end
    failure = candidate .. ": " .. ttl_or_err
  end
  return nil, failure
end

return _M
