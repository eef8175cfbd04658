local check = require("check")
local hash_key = require("ingress.balancer.hash_key")

local VARIABLES = { host = "shop.test", request_uri = "/a?b", http_x_user = "ann", [1] = "first" }

local function key(expression)
  return hash_key.compile(expression)(VARIABLES)
end

return {
  ["a variable"] = function()
    check.equal(key("$request_uri"), "/a?b")
    check.equal(key("${request_uri}"), "/a?b")
    check.equal(key("$HTTP_X_User"), "ann")
  end,
  ["text and variables"] = function()
    check.equal(key("fixed"), "fixed")
    check.equal(key("${host}-v1-$http_x_user"), "shop.test-v1-ann")
    check.equal(key("$host$request_uri"), "shop.test/a?b")
    check.equal(key("${host}port"), "shop.testport")
  end,
  ["captures"] = function()
    check.equal(key("$1"), "first")
    check.equal(key("x${1}y"), "xfirsty")
  end,
  ["variables without a value add nothing"] = function()
    check.equal(key("$unknown"), "")
    check.equal(key("a$unknown-$2-b"), "a--b")
  end,
  ["dollar signs and backslashes"] = function()
    check.equal(key("\\$host"), "$host")
    check.equal(key("a$"), "a$")
    check.equal(key("$-$host"), "$-shop.test")
    check.equal(key("${host"), "${host")
    check.equal(key("a\\b"), "ab")
    check.equal(key(""), "")
  end,
}
