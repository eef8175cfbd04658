-- The backends as this worker knows them.
--
-- A request reads one number, the version of the store. Only when it has moved since a backend was last used is that
-- backend's generation compared, and only when that has moved too is its text decoded. Backends that no request asks
-- for cost a worker nothing.

local algorithm = require("ingress.balancer.algorithm")
local canary = require("ingress.canary")
local cjson = require("cjson")
local config = require("ingress.config")
local external_name = require("ingress.external_name")
local peers = require("ingress.peers")
local store = require("ingress.store")
local variants = require("ingress.variants")

local decode = cjson.decode
local pairs = pairs
local pcall = pcall
local tostring = tostring
local type = type

-- After so many versions, backends that are gone from the store are dropped from memory.
local SWEEP_INTERVAL = 1000
local ID_PREFIX = "b/"

local _M = {}

local data = store.open("configuration_data")
local dict = data.dict
local loaded = {}
local swept_at = 0

-- The id of the backend's entry in the store.
function _M.id(name)
  return ID_PREFIX .. name
end

local function peers_of(backend, endpoints)
  local list, refused = peers.from_endpoints(endpoints, config.listen_ports.status_port)
  for _, reason in ipairs(refused) do
    ngx.log(ngx.ERR, "backend ", backend.name, ": ", reason)
  end
  return list
end

local function set_endpoints(backend, endpoints)
  algorithm.apply(backend, peers_of(backend, endpoints))
end

local function is_external(spec)
  local service = type(spec.service) == "table" and type(spec.service.spec) == "table" and spec.service.spec
  return service and service.type == "ExternalName"
end

local function apply(backend, spec)
  backend.spec = spec
  backend.policy = canary.compile(spec.trafficShapingPolicy)
  backend.reported = nil
  backend.alternative = canary.considered(spec.alternativeBackends)
  backend.variants = variants.read(backend, spec.variants, peers_of)
  if is_external(spec) then
    backend.resolution = external_name.follow(backend.resolution, spec.endpoints, function(endpoints)
      set_endpoints(backend, endpoints)
    end)
    set_endpoints(backend, external_name.endpoints(backend.resolution))
  else
    backend.resolution = external_name.forget(backend.resolution)
    set_endpoints(backend, spec.endpoints)
  end
  -- Thousands of decoded endpoints would only keep the garbage collector busy.
  spec.endpoints = nil
  spec.variants = nil
end

local function drop(name)
  external_name.forget(loaded[name].resolution)
  loaded[name] = nil
end

local function sweep(version)
  swept_at = version
  for name in pairs(loaded) do
    if not data:generation(ID_PREFIX .. name) then
      drop(name)
    end
  end
end

local function refresh(name, version)
  if version - swept_at >= SWEEP_INTERVAL then
    sweep(version)
  end
  local backend = loaded[name]
  local generation = data:generation(ID_PREFIX .. name)
  if not generation then
    if backend then
      drop(name)
    end
    return nil
  end
  if backend and backend.generation == generation then
    backend.checked = version
    return backend
  end
  local text
  text, generation = data:read(ID_PREFIX .. name)
  if not text then
    -- Removed since; the next version says so.
    return backend
  end
  local ok, spec = pcall(decode, text)
  if ok and type(spec) == "table" then
    backend = backend or { name = name }
    apply(backend, spec)
    backend.generation = generation
    loaded[name] = backend
  else
    -- What was known before still serves.
    ngx.log(ngx.ERR, "decoding backend ", name, ": ", tostring(spec))
  end
  if backend then
    backend.checked = version
  end
  return backend
end

-- The backend `name` in its newest state; nil when there is none. Its `balancer` is nil when it has no peers.
function _M.get(name)
  local version = dict:get("version")
  local backend = loaded[name]
  if backend and backend.checked == version then
    return backend
  end
  return refresh(name, version)
end

-- The backend as the rewrite phase of the same request left it, without looking for news.
function _M.peek(name)
  return loaded[name] or _M.get(name)
end

-- As `get`, but waits for the controller if it has told nothing yet, and for the first answer of DNS if the backend
-- still has none. May yield.
function _M.get_resolved(name)
  local backend = _M.get(name)
  if not backend then
    data:wait_to_be_told()
    backend = _M.get(name)
  end
  if backend and backend.resolution and not backend.balancer then
    external_name.wait(backend.resolution)
  end
  return backend
end

return _M
