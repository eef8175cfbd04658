local affinity_cookie = require("ingress.balancer.affinity_cookie")
local check = require("check")

local function cookie(members)
  return affinity_cookie.new({ name = "cookie", cookieSessionAffinity = members })
end

local function text(members, request)
  return cookie(members):text("v", request or { path = "/" })
end

local function none_is_sent_to(agent)
  local line = text({ name = "c", samesite = "None", conditional_samesite_none = true }, { path = "/", agent = agent })
  return line:find("SameSite=None", 1, true) ~= nil
end

local function with_response(set_cookie, test)
  ngx.header["Set-Cookie"] = set_cookie
  local ok, err = pcall(test)
  ngx.header["Set-Cookie"] = nil
  assert(ok, err)
end

return {
  ["the least"] = function()
    check.equal(text({ name = "c" }), "c=v; Path=/; HttpOnly")
    check.equal(text({ name = "c" }, {}), "c=v; HttpOnly")
  end,
  ["without a name it is called route"] = function()
    check.equal(text({ name = "" }), "route=v; Path=/; HttpOnly")
    check.equal(text(nil), "route=v; Path=/; HttpOnly")
    check.equal(text(ngx.null), "route=v; Path=/; HttpOnly")
    check.equal(affinity_cookie.new(nil).name, "route")
  end,
  ["all attributes, in order"] = function()
    local expires = ngx.cookie_time(ngx.time() + 172800)
    check.equal(text({
      name = "c", expires = "172800", maxage = "86400", domain = "shop.test", path = "/x", secure = true,
      samesite = "Strict",
    }), "c=v; Expires=" .. expires .. "; Max-Age=86400; Domain=shop.test; Path=/x; Secure; HttpOnly; SameSite=Strict")
  end,
  ["times may be nothing or past"] = function()
    check.equal(text({ name = "c", maxage = "0" }), "c=v; Max-Age=0; Path=/; HttpOnly")
    check.equal(text({ name = "c", maxage = "-1" }), "c=v; Max-Age=-1; Path=/; HttpOnly")
    check.equal(text({ name = "c", maxage = "", expires = "soon" }), "c=v; Path=/; HttpOnly")
    check.equal(text({ name = "c", expires = "-60" }),
      "c=v; Expires=" .. ngx.cookie_time(ngx.time() - 60) .. "; Path=/; HttpOnly")
  end,
  ["secure follows the request unless it is asked for"] = function()
    check.equal(text({ name = "c" }, { path = "/", https = true }), "c=v; Path=/; Secure; HttpOnly")
    check.equal(text({ name = "c", secure = false }, { path = "/", https = true }), "c=v; Path=/; Secure; HttpOnly")
    check.equal(text({ name = "c", secure = false }), "c=v; Path=/; HttpOnly")
  end,
  ["no attribute brings another one"] = function()
    check.equal(text({ name = "c", domain = "a; Secure", path = "/\r\nX: y" }), "c=v; Path=/; HttpOnly")
    check.equal(text({ name = "c" }, { path = "/a;Domain=b" }), "c=v; HttpOnly")
  end,
  ["same-site"] = function()
    for _, value in ipairs({ "None", "Lax", "Strict" }) do
      check.equal(text({ name = "c", samesite = value }), "c=v; Path=/; HttpOnly; SameSite=" .. value)
    end
    check.equal(text({ name = "c", samesite = "lax" }), "c=v; Path=/; HttpOnly")
  end,
  ["browsers that misread SameSite=None do not get it"] = function()
    local chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%s Safari/537.36"
    local mac = "Mozilla/5.0 (Macintosh; Intel Mac OS X %s) AppleWebKit/605.1.15 (KHTML, like Gecko) %s Safari/605.1.15"
    check.equal(none_is_sent_to(nil), true)
    check.equal(none_is_sent_to("curl/7.88.1"), true)
    check.equal(none_is_sent_to(chrome:format("99.0")), true)
    check.equal(none_is_sent_to(chrome:format("104.0")), true)
    for _, version in ipairs({ "49.0", "51.0.2704.103", "66.0" }) do
      check.equal(none_is_sent_to(chrome:format(version)), false, version)
    end
    check.equal(none_is_sent_to(mac:format("10_14_6", "Version/12.1")), false)
    check.equal(none_is_sent_to(mac:format("10_15_7", "Version/13.1")), true)
    check.equal(none_is_sent_to(mac:format("10_14_6", "Chrome/99.0")), true)
    check.equal(none_is_sent_to("Mozilla/5.0 (iPhone; CPU iPhone OS 12_4 like Mac OS X)"), false)
    check.equal(none_is_sent_to("Mozilla/5.0 (iPad; CPU OS 12_4 like Mac OS X)"), false)
    check.equal(none_is_sent_to("Mozilla/5.0 (iPad; CPU OS 13_1 like Mac OS X)"), true)
    -- Only the condition and only None.
    check.equal(text({ name = "c", samesite = "None" }, { agent = chrome:format("51.0") }),
      "c=v; HttpOnly; SameSite=None")
    check.equal(text({ name = "c", samesite = "Lax", conditional_samesite_none = true },
      { agent = chrome:format("51.0") }), "c=v; HttpOnly; SameSite=Lax")
  end,
  ["the places it belongs to"] = function()
    local subject = cookie({
      name = "c",
      locations = { ["shop.test"] = { "/", "/a" }, ["*.wild.test"] = { "/b" }, _ = { "/c" } },
    })
    for _, place in ipairs({ { "shop.test", "/" }, { "shop.test", "/a" }, { "x.wild.test", "/b" }, { "_", "/c" } }) do
      check.equal(subject:belongs(place[1], place[2]), true, place[1] .. place[2])
    end
    for _, place in ipairs({
      { "shop.test", "/a/" }, { "shop.test", "/b" }, { "x.wild.test", "/" }, { "x.y.wild.test", "/b" }, { "test", "/" },
      { "wild.test", "/b" }, { "", "/" },
    }) do
      check.equal(subject:belongs(place[1], place[2]), false, place[1] .. place[2])
    end
    check.equal(cookie({ name = "c" }):belongs("shop.test", "/"), false)
    check.equal(cookie({ name = "c", locations = ngx.null }):belongs("shop.test", "/"), false)
  end,
  ["what a request brings"] = function()
    local subject = cookie({ name = "Ses-sion.1" })
    for value, expected in pairs({
      ["key|backend"] = { "key", "backend" }, ["|key||backend|more"] = { "key", "backend" }, key = { "key", "" },
    }) do
      ngx.req.set_header("Cookie", "a=b; Ses-sion.1=" .. value)
      check.equal({ subject:read() }, expected)
    end
    for _, header in ipairs({ "Ses-sion.1=", "Ses-sion.1=||", "other=key|backend", "xSes-sion.1=key|backend" }) do
      ngx.req.set_header("Cookie", header)
      check.equal({ subject:read() }, {}, header)
    end
    ngx.req.clear_header("Cookie")
    check.equal({ subject:read() }, {})
  end,
  ["cookies of others stay, an earlier one of its own does not"] = function()
    local subject = cookie({ name = "c", locations = { ["127.0.0.1"] = { "/here" } } })
    ngx.var.location_path = "/here"
    local own = "c=v; Path=/here; HttpOnly"
    with_response(nil, function()
      subject:write("v")
      check.equal(ngx.header["Set-Cookie"], own)
      subject:write("w")
      check.equal(ngx.header["Set-Cookie"], "c=w; Path=/here; HttpOnly")
    end)
    with_response({ "cc=1", "d=2" }, function()
      subject:write("v")
      check.equal(ngx.header["Set-Cookie"], { "cc=1", "d=2", own })
    end)
    with_response(nil, function()
      ngx.var.location_path = "/there"
      subject:write("v")
      check.equal(ngx.header["Set-Cookie"], nil)
    end)
    ngx.var.location_path = ""
  end,
}
