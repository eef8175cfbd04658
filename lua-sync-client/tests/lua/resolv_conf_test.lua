local check = require("check")
local resolv_conf = require("ingress.dns.resolv_conf")

local parse, candidates = resolv_conf.parse, resolv_conf.candidates

return {
  ["a pod's file"] = function()
    check.equal(parse("search shop.svc.cluster.local svc.cluster.local cluster.local\n"
      .. "nameserver 10.96.0.10\noptions ndots:5\n"),
      {
        servers = { { host = "10.96.0.10", port = 53 } },
        search = { "shop.svc.cluster.local", "svc.cluster.local", "cluster.local" },
        ndots = 5,
      })
  end,
  ["ndots wherever it stands"] = function()
    check.equal(parse("options timeout:1 ndots:3 edns0").ndots, 3)
    check.equal(parse("options edns0\noptions ndots:2\n").ndots, 2)
    check.equal(parse("options edns0").ndots, 1)
    check.equal(parse("options ndots:99").ndots, 15)
    check.equal(parse("options ndots:x").ndots, 1)
  end,
  ["IPv6 name servers and ports"] = function()
    check.equal(parse("nameserver fd00::a\nnameserver [127.0.0.1]:5353\nnameserver [::1]:54\n").servers, {
      { host = "[fd00::a]", port = 53 }, { host = "127.0.0.1", port = 5353 }, { host = "[::1]", port = 54 },
    })
  end,
  ["comments, blanks, unknown lines, the last search line"] = function()
    check.equal(parse("# one\n; two\n\n  nameserver  192.0.2.1 # main\r\nsortlist 1\nsearch a b\ndomain c.test.\n"), {
      servers = { { host = "192.0.2.1", port = 53 } }, search = { "c.test" }, ndots = 1,
    })
    check.equal(parse(""), { servers = {}, search = {}, ndots = 1 })
  end,
  ["a missing file is an empty one, with an error"] = function()
    local settings, err = resolv_conf.read("/nonexistent/resolv.conf")
    check.equal(settings.servers, {})
    check.equal(err ~= nil, true)
  end,
  ["names to ask for"] = function()
    local settings = { search = { "a.test", "b.test" }, ndots = 2 }
    check.equal(candidates(settings, "db"), { "db.a.test", "db.b.test", "db" })
    check.equal(candidates(settings, "db.x"), { "db.x.a.test", "db.x.b.test", "db.x" })
    check.equal(candidates(settings, "db.x.y"), { "db.x.y", "db.x.y.a.test", "db.x.y.b.test" })
    check.equal(candidates(settings, "db."), { "db" })
    check.equal(candidates({ search = {}, ndots = 1 }, "db"), { "db" })
  end,
}
