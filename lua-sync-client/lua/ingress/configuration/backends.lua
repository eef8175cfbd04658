-- /configuration/backends: the whole list (POST, GET) or what changed in it (PATCH).

local backend_list = require("ingress.backend_list")
local backends = require("ingress.backends")
local json_text = require("ingress.json_text")
local reply = require("ingress.configuration.reply")
local request = require("ingress.configuration.request")
local write_lock = require("ingress.write_lock")

local ipairs = ipairs
local type = type

local _M = {}

-- Lets this worker resolve external names before a request asks for them.
local function resolve_early(names)
  for _, name in ipairs(names) do
    backends.get(name)
  end
end

function _M.GET()
  local texts = backend_list.texts()
  if not texts then
    return reply.raw(ngx.HTTP_OK, "text/plain", "nil")
  end
  return reply.raw(ngx.HTTP_OK, "application/json", "[" .. table.concat(texts, ",") .. "]")
end

function _M.POST()
  local body, err = request.body()
  local revision, versioned, texts
  if body then
    revision, err, versioned = request.revision_header()
  end
  if revision then
    -- A controller without backends may send null for an empty list.
    texts, err = json_text.elements(body:find("^%s*null%s*$") and "[]" or body)
  end
  if not texts then
    return reply.text(ngx.HTTP_BAD_REQUEST, err)
  end
  local external, failure = write_lock.with(backend_list.replace, texts, revision)
  if not external then
    -- A plain POST keeps the status its clients know.
    return reply.failure(failure, not versioned and ngx.HTTP_BAD_REQUEST)
  end
  resolve_early(external)
  return reply.created()
end

-- The { name, text } of each upserted backend; or nil and an error.
local function upserts_of(document, body)
  local decoded, err = request.table_member(document, "upsert")
  if not decoded then
    return nil, err
  elseif next(decoded) == nil then
    return {}
  end
  local texts = json_text.elements(json_text.members(body).upsert or "")
  if not texts or #texts ~= #decoded then
    return nil, "upsert is not an array"
  end
  local upserts = {}
  for index, backend in ipairs(decoded) do
    if type(backend) ~= "table" or not backend_list.valid_name(backend.name) then
      return nil, "an upserted backend has no valid name"
    end
    upserts[index] = { name = backend.name, text = texts[index] }
  end
  return upserts
end

function _M.PATCH()
  local document, body = request.patch()
  if not document then
    return reply.text(ngx.HTTP_BAD_REQUEST, body)
  end
  local upserts, removals, err
  upserts, err = upserts_of(document, body)
  if upserts then
    removals, err = request.strings_member(document, "remove")
  end
  if not removals then
    return reply.text(ngx.HTTP_BAD_REQUEST, err)
  end
  local external, failure = write_lock.with(backend_list.patch, document.base, document.revision, upserts, removals)
  if not external then
    return reply.failure(failure)
  end
  resolve_early(external)
  return reply.revision(ngx.HTTP_OK, document.revision)
end

return _M
