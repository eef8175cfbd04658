-- Gives each TLS handshake the certificate of the name the client asks for.
--
-- Certificates are parsed once per worker: parsing costs several times as much as the rest of a handshake.

local config = require("ingress.config")
local lrucache = require("resty.lrucache")
local ocsp = require("ingress.ocsp")
local servers = require("ingress.servers")
local ssl = require("ngx.ssl")

local byte = string.byte
local find_text = string.find
local lower = string.lower
local sub = string.sub

local DOT = byte(".")
local DEFAULT_NAME = "_"
local END_OF_KEY = "%-%-%-%-%-END [%u ]*PRIVATE KEY%-%-%-%-%-"
-- Parsed certificates a worker keeps, about 10 KiB each.
local CACHE_SIZE = 4096

local _M = {}

local cache = assert(lrucache.new(CACHE_SIZE))

-- The texts of the pairs: each ends with a key. A part without a certificate is none.
local function parts(pem)
  local found, from = {}, 1
  local _, last = find_text(pem, END_OF_KEY, from)
  while last do
    local part = sub(pem, from, last)
    if find_text(part, "BEGIN CERTIFICATE", 1, true) then
      found[#found + 1] = part
    end
    from = last + 1
    _, last = find_text(pem, END_OF_KEY, from)
  end
  -- What stands behind the key may belong to a single pair.
  return #found > 1 and found or { pem }
end

-- Returns { certificate, key }, or nil and an error.
local function parse_pair(pem)
  local certificate, key, err
  certificate, err = ssl.parse_pem_cert(pem)
  if not certificate then
    return nil, "certificate: " .. tostring(err)
  end
  key, err = ssl.parse_pem_priv_key(pem)
  if not key then
    return nil, "private key: " .. tostring(err)
  end
  return { certificate = certificate, key = key }
end

-- Returns { pairs, chain }: the parsed certificates and keys, one pair for each type of key, and the chain in DER when
-- OCSP needs it; or nil and an error.
local function parse(pem)
  local found, chain = {}, nil
  for _, part in ipairs(parts(pem)) do
    local pair, err = parse_pair(part)
    if not pair then
      return nil, err
    end
    found[#found + 1] = pair
  end
  -- Which of several a client gets is decided after this: a response about the other one would make it leave.
  if config.enable_ocsp and #found == 1 then
    local err
    chain, err = ssl.cert_pem_to_der(pem)
    if not chain then
      ngx.log(ngx.WARN, "no OCSP responses will be stapled, the chain cannot be read: ", err)
    end
  end
  return { pairs = found, chain = chain }
end

-- The parsed certificate `uid` in its newest generation; nil when there is none that can be used.
local function parsed(uid)
  local known = cache:get(uid)
  local generation = servers.generation(uid)
  if not generation then
    cache:delete(uid)
    return nil
  end
  if known and known.generation == generation then
    return known.pairs and known or nil
  end
  local pem
  pem, generation = servers.pem(uid)
  if not pem then
    return nil
  end
  local fresh, err = parse(pem)
  if not fresh then
    ngx.log(ngx.ERR, "parsing certificate ", uid, ": ", err)
    -- The last good one goes on serving; either way this text is not parsed again.
    fresh = { pairs = known and known.pairs, chain = known and known.chain }
  end
  fresh.generation = generation
  -- What an issuer says of one text is not about the next one.
  fresh.id = uid .. "/" .. generation
  cache:set(uid, fresh)
  return fresh.pairs and fresh or nil
end

-- The name a client asks for, as names are kept. Patterns would keep LuaJIT from compiling a handshake's code.
local function canonical(name)
  return lower(byte(name, -1) == DOT and sub(name, 1, -2) or name)
end

local function find(name)
  local uid = servers.uid_for_name(name)
  local found = uid and parsed(uid)
  if not found and name ~= DEFAULT_NAME then
    uid = servers.uid(DEFAULT_NAME)
    found = uid and parsed(uid)
  end
  return found
end

local function install(found)
  local ok, err = ssl.clear_certs()
  for _, pair in ipairs(found.pairs) do
    if ok then
      ok, err = ssl.set_cert(pair.certificate)
    end
    if ok then
      ok, err = ssl.set_priv_key(pair.key)
    end
  end
  return ok, err
end

-- ssl_certificate_by_lua. Without a usable certificate the configuration's own one, if any, is left in place.
function _M.call()
  local name, err = ssl.server_name()
  if err then
    ngx.log(ngx.ERR, "reading the TLS server name: ", err)
  end
  name = name and canonical(name) or DEFAULT_NAME
  local found = find(name)
  if not found then
    servers.hosts:wait_to_be_told()
    found = find(name)
  end
  if not found then
    ngx.log(ngx.ERR, "no certificate for ", name)
    return
  end
  local ok
  ok, err = install(found)
  if not ok then
    ngx.log(ngx.ERR, "setting the certificate for ", name, ": ", err)
    return ngx.exit(ngx.ERROR)
  end
  if found.chain then
    ocsp.staple(found.id, found.chain)
  end
end

return _M
