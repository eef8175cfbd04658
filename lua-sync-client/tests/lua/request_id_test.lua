local check = require("check")
local request_id = require("ingress.request_id")

return {
  ["identifiers are those of NGINX, and none comes twice"] = function()
    local seen = {}
    for _ = 1, 1000 do
      local id = request_id.next()
      check.equal(#id, 32)
      check.equal(id:find("^[0-9a-f]+$"), 1)
      check.equal(seen[id], nil)
      seen[id] = true
    end
  end,
  ["every digit comes about as often as the others"] = function()
    local counts = {}
    for _ = 1, 1000 do
      for digit in request_id.next():gmatch(".") do
        counts[digit] = (counts[digit] or 0) + 1
      end
    end
    -- 2,000 of each, give or take ten standard deviations.
    for digit = 0, 15 do
      local count = counts[("%x"):format(digit)] or 0
      check.equal(count > 1560 and count < 2440, true, "count of " .. digit)
    end
  end,
}
