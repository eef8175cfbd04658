local backend_list = require("ingress.backend_list")
local backends = require("ingress.backends")
local check = require("check")
local store = require("ingress.store")
local transaction = require("ingress.transaction")

local ENDPOINTS = '"endpoints":[{"address":"10.0.0.1","port":"80"}]'

local function patch(upserts, removals)
  local list = {}
  for name, text in pairs(upserts) do
    list[#list + 1] = { name = name, text = text }
  end
  check.equal(backend_list.patch(nil, 1, list, removals or {}), {})
end

return {
  ["an unchanged backend is the same object, whatever else changes"] = function()
    patch({ a = '{"name":"a",' .. ENDPOINTS .. "}" })
    local first = backends.get("a")
    local instance = first.balancer
    patch({ b = '{"name":"b"}' })
    check.equal(backends.get("a") == first, true)
    patch({ a = '{"name":"a","port":1,' .. ENDPOINTS .. "}" })
    check.equal(backends.get("a").spec.port, 1)
    check.equal(backends.get("a").balancer == instance, true)
  end,
  ["a text that cannot be decoded leaves the last good state"] = function()
    patch({ a = '{"name":"a",' .. ENDPOINTS .. "}" })
    check.equal(#backends.get("a").peers, 1)
    for _, id in ipairs({ "a", "never" }) do
      local changes = transaction.new()
      changes:put(store.open("configuration_data"), backends.id(id), "{")
      check.equal(changes:commit(), true)
    end
    check.equal(#backends.get("a").peers, 1)
    check.equal(backends.get("never"), nil)
    patch({}, { "a", "never" })
    check.equal(backends.get("a"), nil)
  end,
  ["a backend that another worker is told of right after the look is found"] = function()
    local data = store.open("configuration_data")
    local wait = data.wait_to_be_told
    data.wait_to_be_told = function(self)
      patch({ late = '{"name":"late",' .. ENDPOINTS .. "}" })
      return wait(self)
    end
    local ok, found = pcall(backends.get_resolved, "late")
    data.wait_to_be_told = nil
    patch({}, { "late" })
    check.equal(ok, true)
    check.equal(found and found.name, "late")
  end,
  ["removed backends do not stay in memory"] = function()
    patch({ gone = '{"name":"gone",' .. ENDPOINTS .. "}" })
    local kept = setmetatable({ backends.get("gone") }, { __mode = "v" })
    check.equal(kept[1].name, "gone")
    patch({}, { "gone" })
    for count = 1, 1000 do
      patch({ tick = '{"name":"tick","port":' .. count .. "}" })
    end
    backends.get("tick")
    collectgarbage()
    collectgarbage()
    check.equal(kept[1], nil)
  end,
}
