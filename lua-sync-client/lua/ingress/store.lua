-- Versioned texts in a shared dictionary, readable by every worker while another one replaces them.
--
-- Keys of the dictionary:
--   version             number of commits so far; the one key a request reads
--   revision            the controller's own number for the content, 0 when unknown
--   instance            changes when the dictionary was emptied (NGINX started anew, or its size changed)
--   g/<id>              generation of an entry: the version that wrote its text (0: staged, not visible yet)
--   t/<id>/<generation> the text
--
-- A text is written under a new key and becomes visible when the generation is set, which is a number overwritten in
-- place and so cannot fail. Old and new text exist side by side for that moment only. Only `ingress.transaction`
-- calls the functions that write.

local random = require("ingress.random")

local setmetatable = setmetatable

-- Seconds.
local PATIENCE = 3
local PAUSE = 0.01

-- What a dictionary node takes beside its key and value, before the slab allocator rounds up.
local NODE_OVERHEAD = 68

local Store = {}
local meta = { __index = Store }
local _M = { class = Store }

local opened = {}

-- The store in dictionary `name`, which must be declared by lua_shared_dict. `metatable` is that of another kind of
-- store, for the modules that define one.
function _M.open(name, metatable)
  local store = opened[name]
  if not store then
    local dict = ngx.shared[name]
    if not dict then
      error("lua_shared_dict " .. name .. " is not declared")
    end
    store = setmetatable({ name = name, dict = dict }, metatable or meta)
    opened[name] = store
  end
  return store
end

local function pointer_key(id)
  return "g/" .. id
end

local function text_key(id, generation)
  return "t/" .. id .. "/" .. generation
end

-- Makes the store's own keys, so that later writes to them need no memory. Called once per configuration load.
function Store:prepare()
  for key, value in pairs({ version = 0, revision = 0, instance = random.identifier() }) do
    local ok, err = self.dict:safe_add(key, value)
    if not ok and err ~= "exists" then
      error("preparing dictionary " .. self.name .. ": " .. tostring(err))
    end
  end
end

function Store:version()
  return self.dict:get("version")
end

function Store:revision()
  return self.dict:get("revision")
end

function Store:instance()
  return self.dict:get("instance")
end

-- Whether anything was written since the dictionary was made.
function Store:is_told()
  return self:version() ~= 0 or self:revision() ~= 0
end

-- Waits for the first write to a dictionary that was just made, for a while. May yield. Who has found nothing before looks
-- again even if there was nothing to wait for: another worker may have written in between.
function Store:wait_to_be_told()
  local deadline = ngx.now() + PATIENCE
  while not self:is_told() and ngx.now() <= deadline do
    ngx.sleep(PAUSE)
  end
end

-- The generation of the entry, nil when there is none.
function Store:generation(id)
  local generation = self.dict:get(pointer_key(id))
  if generation == 0 then
    return nil
  end
  return generation
end

-- The text of the entry and its generation, nil when there is none.
function Store:read(id)
  local dict = self.dict
  -- Between the two reads a writer may have replaced the text: then the generation is read again.
  for _ = 1, 3 do
    local generation = self:generation(id)
    if not generation then
      return nil
    end
    local text = dict:get(text_key(id, generation))
    if text then
      return text, generation
    end
  end
  return nil
end

-- The ids of all entries. It locks the dictionary while it lists the keys: not for the request path.
function Store:ids()
  local ids = {}
  for _, key in ipairs(self.dict:get_keys(0)) do
    if key:sub(1, 2) == "g/" then
      ids[#ids + 1] = key:sub(3)
    end
  end
  return ids
end

-- Takes the room that `put` ({ id, text, generation }) needs, invisibly. Returns true, or nil and an error.
function Store:stage(put)
  put.previous = self.dict:get(pointer_key(put.id))
  local ok, err = self.dict:safe_set(text_key(put.id, put.generation), put.text)
  if ok and not put.previous then
    ok, err = self.dict:safe_set(pointer_key(put.id), 0)
  end
  return ok, err
end

-- Gives back what `stage` took, also when it failed.
function Store:unstage(put)
  self.dict:delete(text_key(put.id, put.generation))
  if not put.previous then
    self.dict:delete(pointer_key(put.id))
  end
end

-- Makes a staged put visible. Cannot fail.
function Store:publish(put)
  self.dict:set(pointer_key(put.id), put.generation)
  if put.previous and put.previous ~= 0 then
    self.dict:delete(text_key(put.id, put.previous))
  end
end

function Store:discard(id)
  local generation = self.dict:get(pointer_key(id))
  if generation then
    self.dict:delete(pointer_key(id))
    self.dict:delete(text_key(id, generation))
  end
end

-- About how many bytes an entry takes.
function Store.size(_, put)
  return #put.text + 2 * (#put.id + NODE_OVERHEAD)
end

return _M
