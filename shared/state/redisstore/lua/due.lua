-- KEYS: objects, expires, created, activity
-- ARGV: expired by ms or "", created by ms or "", limit
-- Returns {names, records, activity}, the longest due first.
local OBJECTS, EXPIRES, CREATED, ACTIVITY = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local limit = tonumber(ARGV[3])

-- How long each name is past its deadline, by the deadline that it has missed the longest.
local names, overdue, position = {}, {}, {}
local function collect(index, deadline)
  if deadline == '' then
    return
  end
  local found = redis.call('ZRANGE', index, '-inf', deadline, 'BYSCORE', 'LIMIT', 0, limit, 'WITHSCORES')
  for i = 1, #found, 2 do
    local name, by = found[i], tonumber(deadline) - tonumber(found[i + 1])
    if not overdue[name] then
      names[#names + 1] = name
      position[name] = #names
      overdue[name] = by
    elseif overdue[name] < by then
      overdue[name] = by
    end
  end
end
collect(EXPIRES, ARGV[1])
collect(CREATED, ARGV[2])

table.sort(names, function(a, b)
  if overdue[a] ~= overdue[b] then
    return overdue[a] > overdue[b]
  end
  return position[a] < position[b]
end)

local due, records, activity = {}, {}, {}
for i = 1, math.min(limit, #names) do
  due[i] = names[i]
  records[i] = redis.call('HGET', OBJECTS, names[i]) or ''
  activity[i] = redis.call('HGET', ACTIVITY, names[i]) or ''
end
return { due, records, activity }
