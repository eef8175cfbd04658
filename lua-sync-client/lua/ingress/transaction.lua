-- Writes to one or more stores, all or nothing: when a dictionary has no room, nothing has changed.
--
-- Only one transaction may run at a time (`ingress.write_lock`); readers need no lock.

local store_keys = require("ingress.store")

local ipairs = ipairs
local setmetatable = setmetatable
local generation_key = store_keys.generation_key
local text_key = store_keys.text_key

-- What a dictionary node takes beside its key and value, before the slab allocator rounds up.
local NODE_OVERHEAD = 80

local _M = {}
local Transaction = {}
local meta = { __index = Transaction }

function _M.new()
  return setmetatable({ puts = {}, removals = {}, revisions = {}, touched = {} }, meta)
end

local function touch(self, store)
  if not self.touched[store] then
    self.touched[store] = store:version() + 1
  end
  return self.touched[store]
end

-- Puts take effect in the order they were given.
function Transaction:put(store, id, text)
  self.puts[#self.puts + 1] = { store = store, id = id, text = text, generation = touch(self, store) }
end

-- Removals take effect after all puts, in the order they were given.
function Transaction:remove(store, id)
  touch(self, store)
  self.removals[#self.removals + 1] = { store = store, id = id }
end

function Transaction:set_revision(store, revision)
  self.revisions[#self.revisions + 1] = { store = store, revision = revision }
end

local function stage(put)
  local dict = put.store.dict
  local pointer = generation_key(put.id)
  put.previous = dict:get(pointer)
  local ok, err = dict:safe_set(text_key(put.id, put.generation), put.text)
  if ok and not put.previous then
    ok, err = dict:safe_set(pointer, 0)
  end
  return ok, err
end

local function unstage(put)
  local dict = put.store.dict
  dict:delete(text_key(put.id, put.generation))
  if not put.previous then
    dict:delete(generation_key(put.id))
  end
end

local function shortage(self, failed, err)
  local dict = failed.store.dict
  local needed = dict:capacity() - dict:free_space()
  for _, put in ipairs(self.puts) do
    if put.store == failed.store then
      needed = needed + #put.text + 2 * (#put.id + NODE_OVERHEAD)
    end
  end
  return { dictionary = failed.store.name, needed = needed, capacity = dict:capacity(), cause = err }
end

local function publish(put)
  local dict = put.store.dict
  dict:set(generation_key(put.id), put.generation)
  if put.previous and put.previous ~= 0 then
    dict:delete(text_key(put.id, put.previous))
  end
end

local function discard(removal)
  local dict = removal.store.dict
  local pointer = generation_key(removal.id)
  local generation = dict:get(pointer)
  if generation then
    dict:delete(pointer)
    dict:delete(text_key(removal.id, generation))
  end
end

-- Returns true; or nil and a table with `dictionary`, `needed` and `capacity` (bytes) and `cause`.
function Transaction:commit()
  for index, put in ipairs(self.puts) do
    local ok, err = stage(put)
    if not ok then
      for undone = index, 1, -1 do
        unstage(self.puts[undone])
      end
      return nil, shortage(self, put, err)
    end
  end
  for _, put in ipairs(self.puts) do
    publish(put)
  end
  for _, removal in ipairs(self.removals) do
    discard(removal)
  end
  for _, entry in ipairs(self.revisions) do
    entry.store.dict:set("revision", entry.revision)
  end
  -- Last: a worker that sees the new version finds everything above.
  for store, version in pairs(self.touched) do
    store.dict:set("version", version)
  end
  return true
end

return _M
