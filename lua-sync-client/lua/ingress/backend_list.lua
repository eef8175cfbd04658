-- The list of all backends in the shared dictionary: replacing it, changing parts of it, giving it back.
--
-- Each element is an entry of its own, in the text it was posted in. An element whose text is the stored one is left
-- alone, so posting the whole list again costs the workers nothing.
--
-- `replace` and `patch` must run under `ingress.write_lock`.

local backends = require("ingress.backends")
local cjson = require("cjson")
local store = require("ingress.store")
local transaction = require("ingress.transaction")

local decode = cjson.decode
local find = string.find
local ipairs = ipairs
local match = string.match
local pcall = pcall
local type = type

-- The id of the entry that lists the other entries' ids in order.
local INDEX = "index"

local _M = {}

local data = store.open("configuration_data")

local function read_index()
  local text = data:read(INDEX)
  return text and decode(text) or nil
end

local function put_index(changes, ids)
  local text = #ids == 0 and "[]" or cjson.encode(ids)
  if data:read(INDEX) ~= text then
    changes:put(data, INDEX, text)
  end
end

-- Notes the name if the backend may be of the kind whose names must be resolved.
local function note_external(names, name, text)
  if find(text, '"ExternalName"', 1, true) then
    names[#names + 1] = name
  end
end

function _M.valid_name(name)
  return type(name) == "string" and name ~= "" and not find(name, "%c")
end

-- The name of an element; nil and an error when it is not valid JSON or has no good name.
local function decoded_name(text)
  local ok, backend = pcall(decode, text)
  if not ok or type(backend) ~= "table" then
    return nil, "a backend is not a JSON object"
  elseif not _M.valid_name(backend.name) then
    return nil, "a backend has no valid name"
  end
  return backend.name
end

-- The list may name a backend more than once: the last one counts, the others are only kept so that the list is given
-- back as it came.
local function id_for(name, repetitions)
  local id = backends.id(name)
  return repetitions > 0 and id .. "\n" .. repetitions or id
end

local function base_id(id)
  return match(id, "^[^\n]*")
end

-- Puts the elements that differ from the stored ones. Returns all ids in order and the names of changed external
-- backends; or nil and an error.
local function put_list(changes, texts)
  local ids, external, seen = {}, {}, {}
  for index = #texts, 1, -1 do
    local text = texts[index]
    -- The usual form is recognised without decoding; stored text has been decoded before.
    local name = match(text, '^{"name":"([^"\\%c]+)"')
    local repetitions = name and seen[name] or 0
    if not name or data:read(id_for(name, repetitions)) ~= text then
      local err
      name, err = decoded_name(text)
      if not name then
        return nil, err .. " (element " .. index .. ")"
      end
      repetitions = seen[name] or 0
      changes:put(data, id_for(name, repetitions), text)
      note_external(external, name, text)
    end
    seen[name] = repetitions + 1
    ids[index] = id_for(name, repetitions)
  end
  return ids, external
end

-- Makes `texts` (the JSON of each backend) the whole list. Returns the names of changed external backends; or nil and
-- a table with `invalid` (an error text) or that of a failed commit.
function _M.replace(texts, revision)
  local changes = transaction.new()
  local ids, external = put_list(changes, texts)
  if not ids then
    return nil, { invalid = external }
  end
  put_index(changes, ids)
  local wanted = {}
  for _, id in ipairs(ids) do
    wanted[id] = true
  end
  for _, id in ipairs(read_index() or {}) do
    if not wanted[id] then
      changes:remove(data, id)
    end
  end
  changes:set_revision(data, revision)
  local ok, failure = changes:commit()
  return ok and external, failure
end

-- Takes the removed ids out of the index and the new ones in, sorted as controllers send the list.
local function update_index(changes, new_ids, removed)
  local ids = {}
  for _, id in ipairs(read_index() or {}) do
    if removed[base_id(id)] then
      changes:remove(data, id)
    else
      ids[#ids + 1] = id
    end
  end
  for _, id in ipairs(new_ids) do
    if not removed[id] then
      ids[#ids + 1] = id
    end
  end
  if #new_ids > 0 then
    table.sort(ids)
  end
  put_index(changes, ids)
end

-- Puts the backends `upserts` ({ name, text } each) and removes those named in `removals`, if `base` is nil or the
-- current revision. Returns the names of changed external backends; or nil and a table with `conflict` (the current
-- revision) or that of a failed commit.
function _M.patch(base, revision, upserts, removals)
  local current = data:revision()
  if base and base ~= current then
    return nil, { conflict = current }
  end
  local changes, external, new_ids, is_new, removed = transaction.new(), {}, {}, {}, {}
  for _, upsert in ipairs(upserts) do
    local id = backends.id(upsert.name)
    local stored = data:read(id)
    if stored ~= upsert.text then
      changes:put(data, id, upsert.text)
      note_external(external, upsert.name, upsert.text)
    end
    if not stored and not is_new[id] then
      is_new[id] = true
      new_ids[#new_ids + 1] = id
    end
  end
  for _, name in ipairs(removals) do
    removed[backends.id(name)] = true
  end
  -- Endpoint changes, the usual case, leave the index as it is.
  if #new_ids > 0 or #removals > 0 or not _M.known() then
    update_index(changes, new_ids, removed)
  end
  changes:set_revision(data, revision)
  local ok, failure = changes:commit()
  return ok and external, failure
end

-- The text of each backend in order; nil before the first list came.
function _M.texts()
  local ids = read_index()
  if not ids then
    return nil
  end
  local texts = {}
  for _, id in ipairs(ids) do
    texts[#texts + 1] = data:read(id)
  end
  return texts
end

-- Whether a list of backends has come.
function _M.known()
  return data:generation(INDEX) ~= nil
end

return _M
