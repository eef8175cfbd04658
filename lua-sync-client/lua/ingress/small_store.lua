-- A store for many short texts, which takes one dictionary node for an entry instead of two and keeps no generations.
--
-- Keys beside those of `ingress.store`:
--   =<id>  the text, or zero bytes where a new text will be
--   +<id>  zero bytes: room kept for a text of another length than the one it will replace
--
-- A new value of the same length is written in place and cannot fail, so making room first is all that is needed to
-- publish without failing.

local store = require("ingress.store")

local byte = string.byte
local rep = string.rep
local sub = string.sub

local NODE_OVERHEAD = 68

local _M = {}
local Small = setmetatable({}, { __index = store.class })
local meta = { __index = Small }

-- The store in dictionary `name`, which must be declared by lua_shared_dict. It cannot hold empty texts.
function _M.open(name)
  return store.open(name, meta)
end

-- The text of the entry, nil when there is none.
function Small:read(id)
  local text = self.dict:get("=" .. id)
  if text and byte(text) ~= 0 then
    return text
  end
  return nil
end

function Small:ids()
  local ids = {}
  for _, key in ipairs(self.dict:get_keys(0)) do
    if sub(key, 1, 1) == "=" then
      ids[#ids + 1] = sub(key, 2)
    end
  end
  return ids
end

function Small:stage(put)
  local previous = self.dict:get("=" .. put.id)
  if not previous then
    put.room = "=" .. put.id
  elseif #previous ~= #put.text then
    -- The key is as long as the real one, so this frees exactly what the text will take.
    put.room = "+" .. put.id
  else
    return true
  end
  return self.dict:safe_set(put.room, rep("\0", #put.text))
end

function Small:unstage(put)
  if put.room then
    self.dict:delete(put.room)
  end
end

function Small:publish(put)
  if put.room and sub(put.room, 1, 1) == "+" then
    self.dict:delete(put.room)
  end
  self.dict:set("=" .. put.id, put.text)
end

function Small:discard(id)
  self.dict:delete("=" .. id)
end

function Small.size(_, put)
  return #put.text + #put.id + NODE_OVERHEAD
end

return _M
