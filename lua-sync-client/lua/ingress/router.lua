-- Rewrite phase: every request finds its backend here, or one that stands in for it, or ends with 503; its canary is
-- chosen; and it gets an identifier.

local backends = require("ingress.backends")
local canary = require("ingress.canary")
local request_id = require("ingress.request_id")
local routed = require("ingress.routed")
local variants = require("ingress.variants")

local byte = string.byte
local forget = routed.forget
local get = backends.get_resolved
local lower = string.lower
local match = string.match
local remember = routed.remember
local set_header = ngx.req.set_header
local sub = string.sub
local var = ngx.var

local _M = {}

-- Values of $proxy_upstream_name in locations that are not proxied by the Lua balancer.
local NOT_BALANCED = { [""] = true, ["-"] = true, internal = true }

local DOT = byte(".")

-- Whether a Host header names `host`, which is what NGINX makes of the request's target or else of the header.
local function names(header, host)
  local name = match(header, "^%[[^%]]*%]") or match(header, "^[^:]*")
  if byte(name, -1) == DOT then
    name = sub(name, 1, -2)
  end
  return lower(name) == host
end

local function is_affinitized(backend)
  local balancer = backend.balancer
  return balancer and balancer.is_affinitized and balancer:is_affinitized()
end

-- Said once for each state of the backend, not once a request.
local function report(backend, ...)
  if not backend.reported then
    backend.reported = true
    ngx.log(ngx.ERR, "backend ", backend.name, ": ", ...)
  end
end

-- The canary of `backend`, if it is to serve the request.
local function chosen_canary(backend)
  if is_affinitized(backend) then
    return nil
  end
  local alternative = get(backend.alternative)
  if not alternative or not alternative.balancer then
    report(backend, "canary ", backend.alternative, " has no endpoints")
    return nil
  elseif is_affinitized(alternative) then
    return alternative
  elseif not alternative.policy then
    report(backend, "canary ", backend.alternative, " has no traffic shaping policy")
    return nil
  end
  return canary.wins(alternative.policy, var) and alternative or nil
end

-- Sends the request to the backend that $default_backend names, and tells that why; or answers false.
local function goes_to_default_backend()
  local name = var.default_backend
  local backend = name and name ~= "" and get(name)
  if not backend or not backend.balancer then
    return false
  end
  var.proxy_upstream_name = name
  var.proxy_alternative_upstream_name = ""
  set_header("X-Code", ngx.HTTP_SERVICE_UNAVAILABLE)
  set_header("X-Format", var.http_accept)
  set_header("X-Original-URI", var.request_uri)
  set_header("X-Namespace", var.namespace)
  set_header("X-Ingress-Name", var.ingress_name)
  set_header("X-Service-Name", var.service_name)
  set_header("X-Service-Port", var.service_port)
  return true
end

-- rewrite_by_lua. `names_requests` tells whether requests without an identifier get one here, in $req_id.
function _M.rewrite(names_requests)
  forget()
  local name = var.proxy_upstream_name
  -- A subrequest (authentication, mirror) shares the variables of the request it belongs to, not its backend.
  if not name or NOT_BALANCED[name] or ngx.is_subrequest then
    return
  end
  local header, host = var.http_host, var.host
  if header ~= host and header and not names(header, host) then
    -- A target such as http://a.test/ picks the server. Neither endpoints nor whoever is asked about the request may be
    -- told another host, nor go by one of two.
    return ngx.exit(ngx.HTTP_BAD_REQUEST)
  end
  local backend = get(name)
  if backend and backend.variants then
    backend = variants.of_request(backend)
  end
  if not backend or not backend.balancer then
    if goes_to_default_backend() then
      return
    end
    return ngx.exit(ngx.HTTP_SERVICE_UNAVAILABLE)
  end
  if backend.alternative then
    local chosen = chosen_canary(backend)
    var.proxy_alternative_upstream_name = chosen and backend.alternative or ""
    backend = chosen or backend
  end
  remember(backend)
  if names_requests and not var.http_x_request_id then
    -- The map of this name would ask NGINX for one.
    var.req_id = request_id.next()
  end
end

return _M
