-- Requests with a body that is never the same twice: wherever the template says {id}, a fresh Xid stands.
-- wrk ... --script post.lua URL -- METHOD TEMPLATE-FILE ID-PREFIX   (one thread: ids count up within it)
local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")
dofile(here .. "report.lua")

local method, parts, prefix
local made = 0

function init(arguments)
  method, prefix = arguments[1], arguments[3]
  local file = assert(io.open(arguments[2], "rb"))
  local template = file:read("*a")
  file:close()
  parts = {}
  local from = 1
  while true do
    local first, last = template:find("{id}", from, true)
    parts[#parts + 1] = template:sub(from, (first or 0) - 1)
    if not first then break end
    from = last + 1
  end
end

function request()
  local pieces, count = { parts[1] }, 1
  for number = 2, #parts do
    made = made + 1
    pieces[count + 1] = string.format("%s%07x0", prefix, made)
    pieces[count + 2] = parts[number]
    count = count + 2
  end
  return wrk.format(method, nil, nil, table.concat(pieces))
end
