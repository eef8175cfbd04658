local check = require("check")
local scratches = require("scratch")
local store = require("ingress.store")
local transaction = require("ingress.transaction")

local keys, write = scratches.keys, scratches.write

local function empty_store()
  return scratches.open(store, "balancer_ewma")
end

return {
  ["a put is read with its generation"] = function()
    local scratch = empty_store()
    check.equal(scratch:version(), 0)
    check.equal(scratch:generation("a"), nil)
    check.equal(write(scratch, { a = "1", b = "2" }), true)
    check.equal({ scratch:read("a") }, { "1", 1 })
    check.equal(write(scratch, { a = "3" }), true)
    check.equal({ scratch:read("a") }, { "3", 2 })
    check.equal({ scratch:read("b") }, { "2", 1 })
    check.equal(scratch:version(), 2)
  end,
  ["nothing is left of old texts and removed entries"] = function()
    local scratch = empty_store()
    write(scratch, { a = "1", b = "2" })
    write(scratch, { a = "3" }, { "b", "unknown" })
    check.equal(keys(scratch), { "g/a", "instance", "revision", "t/a/2", "version" })
    check.equal(scratch:ids(), { "a" })
  end,
  ["the version moves only when an entry does"] = function()
    local scratch = empty_store()
    local changes = transaction.new()
    changes:set_revision(scratch, 9007199254740992)
    check.equal(changes:commit(), true)
    check.equal(scratch:version(), 0)
    check.equal(scratch:revision(), 9007199254740992)
  end,
  ["an update without room changes nothing"] = function()
    local scratch = empty_store()
    write(scratch, { a = "1", b = "2" })
    local before = keys(scratch)
    local changes = transaction.new()
    changes:put(scratch, "a", "new")
    changes:put(scratch, "c", ("x"):rep(2000))
    changes:put(scratch, "d", ("x"):rep(100000))
    changes:remove(scratch, "b")
    changes:set_revision(scratch, 5)
    local ok, failure = changes:commit()
    check.equal(ok, nil)
    check.equal(failure.dictionary, "balancer_ewma")
    check.equal(failure.capacity, 65536)
    check.equal(failure.needed > failure.capacity, true)
    check.equal(keys(scratch), before)
    check.equal({ scratch:read("a") }, { "1", 1 })
    check.equal(scratch:read("b"), "2")
    check.equal(scratch:revision(), 0)
    check.equal(scratch:version(), 1)
  end,
  ["filled to the brim, again and again"] = function()
    local scratch = empty_store()
    local stored = 0
    while write(scratch, { ["entry-" .. stored] = ("x"):rep(300) }) do
      stored = stored + 1
    end
    check.equal(stored > 50, true)
    for index = 0, stored - 1 do
      check.equal(#scratch:read("entry-" .. index), 300)
    end
    check.equal(write(scratch, {}, { "entry-0" }), true)
    check.equal(write(scratch, { other = ("y"):rep(300) }), true)
  end,
  ["two stores change together"] = function()
    local scratch, other = empty_store(), store.open("balancer_ewma_last_touched_at")
    other.dict:flush_all()
    other:prepare()
    local changes = transaction.new()
    changes:put(other, "host", "uid")
    changes:put(scratch, "big", ("x"):rep(100000))
    check.equal(changes:commit(), nil)
    check.equal(other:read("host"), nil)
    check.equal(other:version(), 0)
  end,
  ["the same entry twice in one update"] = function()
    local scratch = empty_store()
    local changes = transaction.new()
    changes:put(scratch, "a", "1")
    changes:put(scratch, "a", "2")
    check.equal(changes:commit(), true)
    check.equal({ scratch:read("a") }, { "2", 1 })
    check.equal(keys(scratch), { "g/a", "instance", "revision", "t/a/1", "version" })
  end,
}
