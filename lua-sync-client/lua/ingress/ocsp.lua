-- Staples what the issuer says of a certificate (OCSP, RFC 6960) to TLS handshakes.
--
-- No handshake waits for a responder: it gets what is known, and a timer asks for what is missing or getting old. What
-- cannot be had is left out, which costs a client no more than it would without stapling.

local ngx_ocsp = require("ngx.ocsp")
local responder = require("ingress.ocsp.responder")
local validity = require("ingress.ocsp.validity")

local max = math.max
local min = math.min
local now = ngx.time
local timer_at = ngx.timer.at

-- Seconds.
local LONGEST_USE = 3 * 24 * 3600
-- A response that does not say until when it holds.
local USE_WITHOUT_END = 3600
local RETRY = 30
-- After this, a certificate that names no responder, or has no issuer beside it, is looked at again.
local RETRY_WITHOUT_RESPONDER = 3600
-- An entry's flags tell when to ask again: seconds since 1970, which fit until 2106.

local _M = {}

local responses = ngx.shared.ocsp_response_cache

-- One worker at a time asks, and none for `seconds` after it began.
local function claim(id, seconds)
  return responses:add(id .. "/asked", true, seconds)
end

local function ask(chain)
  local request, err = ngx_ocsp.create_ocsp_request(chain)
  if not request then
    return nil, "making the request: " .. tostring(err)
  end
  local url
  url, err = ngx_ocsp.get_ocsp_responder_from_der_chain(chain)
  if not url then
    return nil, "finding the responder: " .. tostring(err)
  end
  local response
  response, err = responder.ask(url, request)
  if not response then
    return nil, "asking " .. url .. ": " .. tostring(err)
  end
  -- Signed by the issuer, about this certificate, good, and in force.
  local ok
  ok, err = ngx_ocsp.validate_ocsp_response(response, chain)
  if not ok then
    return nil, "the response of " .. url .. ": " .. tostring(err)
  end
  return response
end

local function keep(id, response)
  local time = now()
  local ends = validity.ends(response)
  local seconds = min(ends and ends - time or USE_WITHOUT_END, LONGEST_USE)
  if seconds < 1 then
    return nil, "the response has ended"
  end
  return responses:set(id, response, seconds, time + max(1, math.floor(seconds / 2)))
end

local function refresh(premature, id, chain)
  if premature then
    return
  end
  local response, err = ask(chain)
  local ok = response
  if response then
    ok, err = keep(id, response)
  end
  if not ok then
    ngx.log(ngx.WARN, "no OCSP response for certificate ", id, ": ", err)
  end
end

local function has_responder(id, chain)
  local url, err = ngx_ocsp.get_ocsp_responder_from_der_chain(chain)
  if not url and claim(id, RETRY_WITHOUT_RESPONDER) then
    ngx.log(ngx.NOTICE, "certificate ", id, " has no OCSP responder", err and ": " or "", err or "")
  end
  return url ~= nil
end

-- ssl_certificate_by_lua: staples the response for the certificate `id` (its uid and generation) if there is one.
-- `chain` is the certificate and its issuers in DER.
function _M.staple(id, chain)
  local response, ask_again = responses:get(id)
  if response then
    local ok, err = ngx_ocsp.set_ocsp_status_resp(response)
    if not ok then
      ngx.log(ngx.ERR, "stapling the OCSP response for certificate ", id, ": ", err)
    end
    if now() < (ask_again or 0) then
      return
    end
  end
  if responses:get(id .. "/asked") or not has_responder(id, chain) or not claim(id, RETRY) then
    return
  end
  local ok, err = timer_at(0, refresh, id, chain)
  if not ok then
    ngx.log(ngx.ERR, "scheduling an OCSP request: ", err)
  end
end

return _M
