-- KEYS: log. ARGV: ms, how many entries to look at, bytes
-- Removes the oldest entries, up to the first entry that was not written before that time. It removes an entry without a
-- time together with a later entry that has one. Returns 1 if there are more entries to look at, else 0.
local LOG, before, most, bytes = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local last
local from, looked, used, largest, more = '-', 0, 0, 0, 1
while more == 1 and looked < most and used <= bytes do
  local count = math.min(batch(largest, bytes - used), most - looked)
  local entries = redis.call('XRANGE', LOG, from, '+', 'COUNT', count)
  if #entries < count then
    more = 0
  end
  for _, entry in ipairs(entries) do
    local id, fields, at, size = entry[1], entry[2], nil, 0
    for i = 1, #fields, 2 do
      if fields[i] == 'at' then
        at = tonumber(fields[i + 1])
      end
      size = size + #fields[i + 1]
    end
    if at and at >= before then
      more = 0
      break
    end
    if at then
      last = id
    end
    from, looked, used, largest = '(' .. id, looked + 1, used + size, math.max(largest, size)
  end
end
if not last then
  return 0
end
-- Ids are <revision>-0: entries below <revision>-1 are removed.
redis.call('XTRIM', LOG, 'MINID', string.sub(last, 1, -2) .. '1')
return more
