local check = require("check")
local scratches = require("scratch")
local small_store = require("ingress.small_store")
local transaction = require("ingress.transaction")

local keys, write = scratches.keys, scratches.write

local function empty_store()
  return scratches.open(small_store, "balancer_ewma_locks")
end

-- Fills the store until nothing fits and returns the number of entries.
local function fill(scratch)
  local stored = 0
  while write(scratch, { ["host-" .. stored .. ".test"] = ("u"):rep(36) }) do
    stored = stored + 1
  end
  return stored
end

return {
  ["new, changed, longer, shorter, removed"] = function()
    local scratch = empty_store()
    for _, text in ipairs({ "one", "two", "longer", "x" }) do
      check.equal(write(scratch, { a = text, b = "same" }), true)
      check.equal(scratch:read("a"), text)
    end
    check.equal(scratch:read("b"), "same")
    check.equal(scratch:read("c"), nil)
    check.equal(write(scratch, {}, { "a", "c" }), true)
    check.equal(scratch:read("a"), nil)
    check.equal(scratch:ids(), { "b" })
    check.equal(keys(scratch), { "=b", "instance", "revision", "version" })
  end,
  ["an update without room changes nothing"] = function()
    local scratch = empty_store()
    write(scratch, { a = "old", b = "old" })
    local before = keys(scratch)
    local changes = transaction.new()
    changes:put(scratch, "a", "new")
    changes:put(scratch, "b", "longer")
    changes:put(scratch, "c", "new")
    changes:put(scratch, "d", ("x"):rep(100000))
    changes:remove(scratch, "a")
    local ok, failure = changes:commit()
    check.equal(ok, nil)
    check.equal(failure.dictionary, "balancer_ewma_locks")
    check.equal(keys(scratch), before)
    check.equal({ scratch:read("a"), scratch:read("b"), scratch:read("c") }, { "old", "old", nil })
  end,
  ["what is staged is not seen"] = function()
    local scratch = empty_store()
    write(scratch, { a = "old" })
    local puts = { { id = "a", text = "longer" }, { id = "b", text = "new" } }
    for _, put in ipairs(puts) do
      check.equal(scratch:stage(put), true)
    end
    check.equal(scratch:read("a"), "old")
    check.equal(scratch:read("b"), nil)
    for _, put in ipairs(puts) do
      scratch:publish(put)
    end
    check.equal(scratch:read("a"), "longer")
    check.equal(scratch:read("b"), "new")
  end,
  ["an entry changes its length in a full store"] = function()
    local scratch = empty_store()
    local stored = fill(scratch)
    check.equal(write(scratch, { ["host-0.test"] = ("v"):rep(36) }), true)
    check.equal(scratch:read("host-0.test"), ("v"):rep(36))
    check.equal(write(scratch, { ["host-0.test"] = ("v"):rep(300) }), nil)
    check.equal(scratch:read("host-0.test"), ("v"):rep(36))
    check.equal(write(scratch, {}, { "host-1.test" }), true)
    check.equal(write(scratch, { ["host-0.test"] = ("v"):rep(35) }), true)
    check.equal(scratch:read("host-0.test"), ("v"):rep(35))
    for index = 2, stored - 1 do
      check.equal(scratch:read("host-" .. index .. ".test"), ("u"):rep(36))
    end
  end,
  ["an entry takes one node"] = function()
    -- 64 KiB in slots of 128 bytes, less what the dictionary itself needs.
    check.equal(fill(empty_store()) > 350, true)
  end,
}
