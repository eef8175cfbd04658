local check = require("check")

return {
  ["equal values"] = function()
    check.equal({ a = { 1, "x" } }, { a = { 1, "x" } })
    check.equal(nil, nil)
  end,
  ["different values"] = function()
    for _, pair in ipairs({
      { 1, "1" }, { {}, { 1 } }, { { a = 1 }, { b = 1 } }, { false, nil }, { { { 1 } }, { { 2 } } },
    }) do
      if pcall(check.equal, pair[1], pair[2]) then
        error("a difference was not noticed")
      end
    end
  end,
  ["failures"] = function()
    check.failure(nil, "no such file", "such")
    check.equal(pcall(check.failure, nil, "no such file", "other"), false)
    check.equal(pcall(check.failure, {}, nil, ""), false)
  end,
}
