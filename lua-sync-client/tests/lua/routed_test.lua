local check = require("check")
local routed = require("ingress.routed")

local backend = { name = "a" }

-- What another request recalls that comes in the millisecond in which this one remembers.
local function recalled_elsewhere()
  for _ = 1, 100 do
    routed.remember(backend)
    local now = ngx.now()
    local answer = ngx.location.capture("/recall").body
    if answer:find(tostring(now) .. " ", 1, true) == 1 then
      return answer:match("%a+$")
    end
  end
  return "never in time"
end

return {
  ["a backend is recalled once"] = function()
    routed.remember(backend)
    check.equal(routed.recall(), backend)
    check.equal(routed.recall(), nil)
  end,
  ["what was forgotten is not recalled"] = function()
    routed.remember(backend)
    routed.forget()
    check.equal(routed.recall(), nil)
  end,
  ["a backend is not recalled later"] = function()
    routed.remember(backend)
    ngx.sleep(0.002)
    check.equal(routed.recall(), nil)
  end,
  ["no request recalls the backend of another one"] = function()
    check.equal(recalled_elsewhere(), "nothing")
  end,
}
