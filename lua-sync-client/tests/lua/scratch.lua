-- Stores to try things out on, and what tests do with them.

local transaction = require("ingress.transaction")

local _M = {}

-- An empty store, of a kind that `module` opens, in a small dictionary that nothing else in the tests uses.
function _M.open(module, dictionary)
  local scratch = module.open(dictionary)
  scratch.dict:flush_all()
  scratch.dict:flush_expired()
  scratch:prepare()
  return scratch
end

function _M.write(scratch, values, removals)
  local changes = transaction.new()
  for id, text in pairs(values) do
    changes:put(scratch, id, text)
  end
  for _, id in ipairs(removals or {}) do
    changes:remove(scratch, id)
  end
  return changes:commit()
end

function _M.keys(scratch)
  local list = scratch.dict:get_keys(0)
  table.sort(list)
  return list
end

return _M
