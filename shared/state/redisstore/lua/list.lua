-- KEYS: rev, objects, the index (names or owners), activity
-- ARGV: limit (0: none), then for each range: min, max, length of what stands before the name
-- Returns {revision, remaining, names, records, activity}: one snapshot. The names are the first of all
-- ranges together, in any order.
local REVISION, OBJECTS, INDEX, ACTIVITY = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local limit = tonumber(ARGV[1])

local ranges, total = {}, 0
for i = 2, #ARGV, 3 do
  local min, max, skip = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  local members = redis.call('ZRANGE', INDEX, min, max, 'BYLEX', 'LIMIT', 0, limit > 0 and limit or -1)
  if skip > 0 then
    for j = 1, #members do
      members[j] = string.sub(members[j], skip + 1)
    end
  end
  ranges[#ranges + 1] = members
  -- A range that came back short is counted already.
  if limit > 0 and #members == limit then
    total = total + redis.call('ZLEXCOUNT', INDEX, min, max)
  else
    total = total + #members
  end
end

-- Byte order. The operator < follows the locale that the server was started in.
local function before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

local names = {}
if #ranges == 1 then
  names = ranges[1]
elseif limit == 0 or total <= limit then
  for _, members in ipairs(ranges) do
    for _, name in ipairs(members) do
      names[#names + 1] = name
    end
  end
else
  local position = {}
  for i = 1, #ranges do
    position[i] = 1
  end
  while #names < limit do
    local first
    for i, members in ipairs(ranges) do
      local name = members[position[i]]
      if name and (not first or before(name, ranges[first][position[first]])) then
        first = i
      end
    end
    names[#names + 1] = ranges[first][position[first]]
    position[first] = position[first] + 1
  end
end

-- unpack is bound by the size of Lua's stack.
local function values(key)
  local result = {}
  for from = 1, #names, 500 do
    local chunk = redis.call('HMGET', key, unpack(names, from, math.min(from + 499, #names)))
    for _, value in ipairs(chunk) do
      result[#result + 1] = value or ''
    end
  end
  return result
end

return {
  redis.call('GET', REVISION) or '1',
  string.format('%.0f', total - #names),
  names,
  values(OBJECTS),
  values(ACTIVITY),
}
