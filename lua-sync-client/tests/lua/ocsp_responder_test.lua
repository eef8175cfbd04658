local check = require("check")
local responder = require("ingress.ocsp.responder")

local function parsed(url)
  return { responder.parse(url) }
end

return {
  ["where a responder is"] = function()
    check.equal(parsed("http://ocsp.test"), { "ocsp.test", 80, "/" })
    check.equal(parsed("HTTP://ocsp.test:8080/a/b?c=d"), { "ocsp.test", 8080, "/a/b?c=d" })
    check.equal(parsed("http://[fd00::1]:81/x"), { "[fd00::1]", 81, "/x" })
    check.equal(parsed("http://192.0.2.1?x"), { "192.0.2.1", 80, "/?x" })
    -- A name like any other, which only DNS can turn into an address.
    check.equal(parsed("http://unix:/run/s"), { "unix", 80, "/run/s" })
  end,
  ["what is refused"] = function()
    for _, url in ipairs({
      "", "https://ocsp.test/", "ldap://ocsp.test", "http://", "http:///x", "http://a b/", "http://u@h/", "http://h:0/",
      "http://h:65536/", "http://h:x/", "http://h/a b", "http://h/\r\nX: y", "http://h\r\n/", "http://h/\0",
    }) do
      check.equal(parsed(url), {}, url)
    end
  end,
}
