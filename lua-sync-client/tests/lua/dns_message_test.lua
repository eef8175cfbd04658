local check = require("check")
local message = require("ingress.dns.message")

local HEADER = "\0\7\129\128\0\1\0%s\0\0\0\0"

local function question()
  return message.question(7, "Db.test", message.A)
end

local function answer(count, records, flags)
  return "\0\7" .. (flags or "\129\128") .. "\0\1\0" .. string.char(count) .. "\0\0\0\0" .. question():sub(13)
    .. records
end

local function record(record_type, ttl, data)
  return "\192\12\0" .. string.char(record_type) .. "\0\1" .. ttl .. "\0" .. string.char(#data) .. data
end

return {
  ["a question"] = function()
    check.equal(message.question(258, "db.test", message.AAAA), "\1\2\1\0\0\1\0\0\0\0\0\0\2db\4test\0\0\28\0\1")
  end,
  ["names that cannot be asked for"] = function()
    for _, name in ipairs({ "", ".", "a..b", ".a", ("x"):rep(64) .. ".test", ("x."):rep(127) .. "test" }) do
      local text, err = message.question(1, name, message.A)
      check.failure(text, err, "not a domain name")
    end
  end,
  ["addresses and the least TTL, past a CNAME"] = function()
    local records = record(5, "\0\0\0\30", "\1x\192\15") .. record(1, "\0\0\1\0", "\10\0\0\1")
      .. record(1, "\0\0\0\60", "\10\0\0\2")
    check.equal(message.answer(answer(3, records), question()),
      { rcode = 0, truncated = false, addresses = { "10.0.0.1", "10.0.0.2" }, ttl = 30 })
  end,
  ["IPv6 addresses in the usual short form"] = function()
    local asked = message.question(7, "db.test", message.AAAA)
    local reply = HEADER:format("\1") .. asked:sub(13) .. record(28, "\0\0\0\5", "\253" .. ("\0"):rep(14) .. "\1")
    check.equal(message.answer(reply, asked).addresses, { "fd00::1" })
  end,
  ["no such name, truncated, a TTL with the top bit"] = function()
    check.equal(message.answer(answer(0, "", "\129\131"), question()),
      { rcode = 3, truncated = false, addresses = {} })
    check.equal(message.answer(answer(1, "", "\131\128"), question()),
      { rcode = 0, truncated = true, addresses = {} })
    check.equal(message.answer(answer(1, record(1, "\128\0\0\1", "\10\0\0\1")), question()).ttl, 0)
  end,
  ["what is not the answer"] = function()
    local good = answer(1, record(1, "\0\0\0\5", "\10\0\0\1"))
    check.equal(#message.answer(good, question()).addresses, 1)
    for _, packet in ipairs({
      "", "\0", "\0\7\129", "\0\8" .. good:sub(3), question(), good:gsub("test", "tesx"), good:sub(1, -2),
      good:sub(1, 30), answer(2, record(1, "\0\0\0\5", "\10\0\0\1")),
    }) do
      local result, err = message.answer(packet, question())
      check.failure(result, err, "answer")
    end
  end,
  ["the case of the name does not matter"] = function()
    local reply = answer(1, record(1, "\0\0\0\5", "\10\0\0\1")):gsub("Db", "dB")
    check.equal(#message.answer(reply, question()).addresses, 1)
  end,
}
