local check = require("check")
local json_text = require("ingress.json_text")

local elements, members = json_text.elements, json_text.members

return {
  ["elements keep their text"] = function()
    check.equal(elements([==[ [ {"a":[],"b":{}} , "x,]\"" ,12,null , [1,[2]] ] ]==]),
      { '{"a":[],"b":{}}', [["x,]\""]], "12", "null", "[1,[2]]" })
  end,
  ["empty arrays"] = function()
    check.equal(elements("[]"), {})
    check.equal(elements(" [ \n ] "), {})
  end,
  ["brackets and escapes within strings"] = function()
    check.equal(elements([=[[{"n":"}]\\"},{"n":"[{\"\\\""}]]=]), { [=[{"n":"}]\\"}]=], [=[{"n":"[{\"\\\""}]=] })
  end,
  ["what is not an array"] = function()
    for _, text in ipairs({
      "", " ", "{}", "null", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", '["a', [=[["\"]]=], "[{]", "[1]x", "[1]]",
      "[{}", '[{"a":"]}', "x[]",
    }) do
      local parts, err = elements(text)
      check.failure(parts, err, "not a JSON array")
    end
  end,
  ["members by name"] = function()
    check.equal(members([[{"base": 1, "upsert":[ {"name":"a"} ],"remove":[],"x":{"upsert":2},"s":"a\"}"}]]),
      { base = "1", upsert = '[ {"name":"a"} ]', remove = "[]", x = '{"upsert":2}', s = [["a\"}"]] })
    check.equal(members("{}"), {})
  end,
  ["of a repeated member the last counts, as in the decoder"] = function()
    check.equal(members('{"a":1,"a":2}'), { a = "2" })
  end,
  ["what is not an object"] = function()
    for _, text in ipairs({ "", "[]", "{", '{"a"', '{"a":', '{"a":1', '{"a" 1}', "{a:1}", '{"a":1,}', '{"a":1}}' }) do
      local parts, err = members(text)
      check.failure(parts, err, "not a JSON object")
    end
  end,
  ["a large array"] = function()
    local parts = {}
    for index = 1, 20000 do
      parts[index] = '{"name":"backend-' .. index .. '","endpoints":[]}'
    end
    check.equal(#elements("[" .. table.concat(parts, ",") .. "]"), 20000)
  end,
}
