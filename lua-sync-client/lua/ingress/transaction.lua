-- Writes to one or more stores, all or nothing: when a dictionary has no room, nothing has changed.
--
-- Only one transaction may run at a time (`ingress.write_lock`); readers need no lock.

local ipairs = ipairs
local setmetatable = setmetatable

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

local function shortage(self, failed, err)
  local dict = failed.store.dict
  local needed = dict:capacity() - dict:free_space()
  for _, put in ipairs(self.puts) do
    if put.store == failed.store then
      needed = needed + put.store:size(put)
    end
  end
  return { dictionary = failed.store.name, needed = needed, capacity = dict:capacity(), cause = err }
end

-- Returns true; or nil and a table with `dictionary`, `needed` and `capacity` (bytes) and `cause`.
function Transaction:commit()
  for index, put in ipairs(self.puts) do
    local ok, err = put.store:stage(put)
    if not ok then
      for undone = index, 1, -1 do
        self.puts[undone].store:unstage(self.puts[undone])
      end
      return nil, shortage(self, put, err)
    end
  end
  for _, put in ipairs(self.puts) do
    put.store:publish(put)
  end
  for _, removal in ipairs(self.removals) do
    removal.store:discard(removal.id)
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
