local check = require("check")
local peers = require("ingress.peers")

local function keys(endpoints, status_port)
  local list, refused = peers.from_endpoints(endpoints, status_port or "10246")
  local result = {}
  for index, peer in ipairs(list) do
    result[index] = peer.key
  end
  return result, refused
end

return {
  ["addresses and ports"] = function()
    check.equal(peers.from_endpoints({ { address = "10.0.0.1", port = "8080" } }, "10246"),
      { { host = "10.0.0.1", port = 8080, key = "10.0.0.1:8080" } })
    check.equal(keys({ { address = "10.0.0.1", port = 80 } }), { "10.0.0.1:80" })
  end,
  ["IPv6 in brackets, as NGINX writes it"] = function()
    check.equal(keys({ { address = "FD00:0:0:0::1", port = "80" } }), { "[fd00::1]:80" })
  end,
  ["repetitions count once"] = function()
    check.equal(keys({
      { address = "10.0.0.1", port = "80" },
      { address = "10.0.0.2", port = "80" },
      { address = "10.0.0.1", port = "80" },
    }), { "10.0.0.1:80", "10.0.0.2:80" })
  end,
  ["nothing"] = function()
    check.equal(keys(nil), {})
    check.equal(keys(ngx.null), {})
    check.equal(keys({}), {})
  end,
  ["what cannot be connected to is left out"] = function()
    for _, endpoint in ipairs({
      { address = "db.test", port = "80" }, { address = "10.0.0", port = "80" }, { address = "10.0.0.1" },
      { address = "010.0.0.1", port = "80" }, { address = "10.0.0.1", port = "0" }, { port = "80" }, "x",
      { address = "10.0.0.1", port = "65536" }, { address = "10.0.0.1", port = "1.5" },
      { address = "unix:/run/x.sock", port = "80" }, { address = "10.0.0.1\0", port = "80" },
    }) do
      local list, refused = keys({ endpoint, { address = "10.0.0.9", port = "80" } })
      check.equal(list, { "10.0.0.9:80" })
      check.equal(#refused, 1)
    end
  end,
  ["the status port in every spelling"] = function()
    for _, address in ipairs({
      "127.0.0.1", "127.1.2.3", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:0.0.0.0",
    }) do
      check.equal(keys({ { address = address, port = "10246" } }), {}, address)
      check.equal(#keys({ { address = address, port = "80" } }), 1, address)
    end
    check.equal(#keys({ { address = "10.0.0.1", port = "10246" } }), 1)
    check.equal(#keys({ { address = "::2", port = "10246" } }), 1)
  end,
}
