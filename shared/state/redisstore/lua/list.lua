-- KEYS: rev, objects, the index (names or owners), activity, server
-- ARGV: limit, bytes, direct, the revision and the server of the names that the caller has or two empty texts, then for each range:
-- min, max, length of the text before the name
-- Returns {revision, remaining, names, records, activity}: one snapshot. The names are the first of all ranges
-- together, in byte order. If there are more than direct names, it returns {revision, remaining, names, server}: a script
-- takes several times as long to read a record as a command does, because it copies the record into Lua and back. If nothing was
-- written since the caller got its names, it returns {}.
local REVISION, OBJECTS, INDEX, ACTIVITY, SERVER = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local limit, bytes, direct = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local revision = redis.call('GET', REVISION) or '1'
local server = redis.call('GET', SERVER) or ''
if revision == ARGV[4] and server == ARGV[5] then
  return {}
end

-- A range is read in chunks: many ranges do not cost many pages.
local chunk = math.min(limit, math.max(16, math.ceil(2 * limit / ((#ARGV - 5) / 3))))

-- The common prefix of all names that were read.
local shared
local function share(name)
  shared = shared or name
  while string.sub(name, 1, #shared) ~= shared do
    shared = string.sub(shared, 1, -2)
  end
end

-- Reads the next chunk of a range, and reports whether there is one.
local function advance(range)
  if not range.min then
    return false
  end
  local members = redis.call('ZRANGE', INDEX, range.min, range.max, 'BYLEX', 'LIMIT', 0, chunk)
  range.min = #members == chunk and '(' .. members[chunk] or nil
  if range.skip > 0 then
    for i = 1, #members do
      members[i] = string.sub(members[i], range.skip + 1)
    end
  end
  range.members, range.position = members, 1
  if #members == 0 then
    return false
  end
  share(members[1])
  share(members[#members])
  return true
end

-- Byte order. The operator < follows the locale that the server was started in. A call costs more than
-- a comparison, so the common prefix is skipped, and eight bytes are read at a time. Behind the end of a name there is nil.
local byte = string.byte
local function before(a, b)
  a, b = a.members[a.position], b.members[b.position]
  for i = #shared + 1, #a, 8 do
    local a1, a2, a3, a4, a5, a6, a7, a8 = byte(a, i, i + 7)
    local b1, b2, b3, b4, b5, b6, b7, b8 = byte(b, i, i + 7)
    if a1 ~= b1 then
      return (a1 or -1) < (b1 or -1)
    elseif a2 ~= b2 then
      return (a2 or -1) < (b2 or -1)
    elseif a3 ~= b3 then
      return (a3 or -1) < (b3 or -1)
    elseif a4 ~= b4 then
      return (a4 or -1) < (b4 or -1)
    elseif a5 ~= b5 then
      return (a5 or -1) < (b5 or -1)
    elseif a6 ~= b6 then
      return (a6 or -1) < (b6 or -1)
    elseif a7 ~= b7 then
      return (a7 or -1) < (b7 or -1)
    elseif a8 ~= b8 then
      return (a8 or -1) < (b8 or -1)
    end
  end
  return #a < #b
end

-- The ranges as a heap: the range with the first name is heap[1].
local heap = {}
local function sink(i)
  while true do
    local least = i
    for child = 2 * i, math.min(2 * i + 1, #heap) do
      if before(heap[child], heap[least]) then
        least = child
      end
    end
    if least == i then
      return
    end
    heap[i], heap[least] = heap[least], heap[i]
    i = least
  end
end

local total = 0
for i = 6, #ARGV, 3 do
  local range = { min = ARGV[i], max = ARGV[i + 1], skip = tonumber(ARGV[i + 2]) }
  if advance(range) then
    heap[#heap + 1] = range
    -- A range with a short chunk is counted already.
    if range.min then
      total = total + redis.call('ZLEXCOUNT', INDEX, ARGV[i], range.max)
    else
      total = total + #range.members
    end
  end
end
for i = math.floor(#heap / 2), 1, -1 do
  sink(i)
end

local names = {}
if #heap == 1 and #heap[1].members == limit then
  names, heap = heap[1].members, {}
end
while #names < limit and #heap > 0 do
  local first = heap[1]
  names[#names + 1] = first.members[first.position]
  first.position = first.position + 1
  if first.position > #first.members and not advance(first) then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  sink(1)
end

local function remaining(read)
  return string.format('%.0f', total - read)
end
if #names > direct then
  local fits = fitting(OBJECTS, names, bytes)
  if fits < #names then
    names = { unpack(names, 1, fits) }
  end
  return { revision, remaining(fits), names, server }
end
local found = page(OBJECTS, ACTIVITY, names, bytes)
return { revision, remaining(#found[1]), unpack(found) }
