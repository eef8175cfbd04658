-- Reads resolv.conf(5): name servers, search domains and `ndots`.

local gmatch = string.gmatch
local match = string.match
local tonumber = tonumber

local DEFAULT_PORT = 53
local DEFAULT_NDOTS = 1
local MAX_NDOTS = 15

local _M = {}

-- "1.2.3.4", "fd00::1", and with a port "[1.2.3.4]:5353" or "[fd00::1]:5353" (OpenBSD's notation).
local function name_server(text)
  local host, port = match(text, "^%[([^%]]+)%]:(%d+)$")
  host = host or text
  if host:find(":", 1, true) then
    host = "[" .. host .. "]"
  end
  return { host = host, port = tonumber(port) or DEFAULT_PORT }
end

-- Parses the `text` of the file into { servers, search, ndots }. Lines it does not know are skipped; of several
-- `search` or `domain` lines the last one holds.
function _M.parse(text)
  local settings = { servers = {}, search = {}, ndots = DEFAULT_NDOTS }
  for line in gmatch(text, "[^\r\n]+") do
    local keyword, rest = match(line, "^%s*(%a+)%s+(.*)$")
    rest = rest and rest:gsub("[#;].*$", "")
    if keyword == "nameserver" then
      local server = match(rest, "^%S+")
      if server then
        settings.servers[#settings.servers + 1] = name_server(server)
      end
    elseif keyword == "search" or keyword == "domain" then
      settings.search = {}
      for domain in gmatch(rest, "%S+") do
        settings.search[#settings.search + 1] = match(domain, "^(.-)%.?$")
      end
    elseif keyword == "options" then
      for option in gmatch(rest, "%S+") do
        local ndots = tonumber(match(option, "^ndots:(%d+)$"))
        if ndots then
          settings.ndots = math.min(ndots, MAX_NDOTS)
        end
      end
    end
  end
  return settings
end

-- The settings in the file at `path`; those of an empty file, and an error, when it cannot be read.
function _M.read(path)
  local file, err = io.open(path, "rb")
  if not file then
    return _M.parse(""), err
  end
  local text = file:read("*a")
  file:close()
  return _M.parse(text)
end

-- The full names to ask for `name`, in order.
function _M.candidates(settings, name)
  local absolute = match(name, "^(.*)%.$")
  if absolute then
    return { absolute }
  end
  local _, dots = name:gsub("%.", "")
  local names = {}
  if dots >= settings.ndots then
    names[1] = name
  end
  for _, domain in ipairs(settings.search) do
    if domain ~= "" then
      names[#names + 1] = name .. "." .. domain
    end
  end
  if dots < settings.ndots then
    names[#names + 1] = name
  end
  return names
end

return _M
