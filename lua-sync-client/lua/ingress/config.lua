-- Settings of this configuration generation, read from lua.json when NGINX loads its configuration.
--
-- A reload reads the file again; workers keep what they were started with. A file that is missing or wrong fails the
-- configuration test, so the running configuration stays.

local cjson = require("cjson")

local type = type

-- Every member with its default; the default's type is the type the file must have.
local DEFAULTS = {
  checksum = "",
  dict_sizes = {},
  enable_metrics = false,
  enable_ocsp = false,
  hsts = false,
  hsts_include_subdomains = false,
  hsts_max_age = "",
  hsts_preload = false,
  http_redirect_code = 308,
  is_ssl_passthrough_enabled = false,
  listen_ports = {},
  metrics_socket = "",
  monitor_batch_max_size = 10000,
  resolv_conf = "/etc/resolv.conf",
  use_forwarded_headers = false,
  use_proxy_protocol = false,
}

local LISTEN_PORTS = { https = "443", status_port = "10246", ssl_proxy = "442" }

local DICTIONARIES = {
  "configuration_data", "certificate_data", "certificate_servers", "ocsp_response_cache", "balancer_ewma",
  "balancer_ewma_last_touched_at", "balancer_ewma_locks", "configuration_locks",
}

-- Required here once, so that workers share the compiled code of their master.
local PRELOADED = {
  "ingress.balancer", "ingress.certificate", "ingress.configuration", "ingress.monitor", "ingress.router",
  "ingress.worker", "ingress.balancer.chash", "ingress.balancer.chashsubset", "ingress.balancer.ewma",
  "ingress.balancer.round_robin", "ingress.balancer.sticky_balanced", "ingress.balancer.sticky_persistent",
}

local _M = {}

local function checked(given, defaults, where)
  local values = {}
  for name, default in pairs(defaults) do
    local value = given[name]
    if value == nil or value == cjson.null then
      value = default
    elseif type(value) ~= type(default) then
      return nil, where .. name .. ": expected a " .. type(default) .. ", found a " .. type(value)
    end
    values[name] = value
  end
  return values
end

-- The settings that the JSON `text` gives, with defaults; or nil and an error.
function _M.parse(text)
  local ok, given = pcall(cjson.decode, text)
  if not ok then
    return nil, "not JSON: " .. tostring(given)
  elseif type(given) ~= "table" then
    return nil, "not an object"
  end
  local values, err = checked(given, DEFAULTS, "")
  if not values then
    return nil, err
  end
  values.listen_ports, err = checked(values.listen_ports, LISTEN_PORTS, "listen_ports.")
  if not values.listen_ports then
    return nil, err
  end
  if values.monitor_batch_max_size < 1 then
    return nil, "monitor_batch_max_size: must be at least 1"
  end
  if values.enable_metrics and values.metrics_socket == "" then
    return nil, "metrics_socket: needed when enable_metrics is true"
  end
  return values
end

-- init_by_lua: reads the file at `path`, makes the dictionaries ready and loads the other modules.
function _M.load(path)
  local file, err = io.open(path, "rb")
  if not file then
    error("reading Lua settings: " .. err)
  end
  local text = file:read("*a")
  file:close()

  local values
  values, err = _M.parse(text)
  if not values then
    error("Lua settings in " .. path .. ": " .. err)
  end
  for name, value in pairs(values) do
    _M[name] = value
  end

  for _, name in ipairs(DICTIONARIES) do
    if not ngx.shared[name] then
      error("lua_shared_dict " .. name .. " is not declared")
    end
  end
  local servers = require("ingress.servers")
  servers.hosts:prepare()
  servers.certificates:prepare()
  require("ingress.store").open("configuration_data"):prepare()
  for _, name in ipairs(PRELOADED) do
    require(name)
  end
end

return _M
