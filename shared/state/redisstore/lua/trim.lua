-- KEYS: log. ARGV: ms, how many entries to look at
-- Removes the oldest entries, up to the first that was not written before that time. Entries without a time
-- go when a later one with a time does. Returns 1 when it did not come to an end, else 0.
local LOG, before, most = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])

local entries = redis.call('XRANGE', LOG, '-', '+', 'COUNT', most)
local last
local more = #entries == most and 1 or 0
for _, entry in ipairs(entries) do
  local id, fields, at = entry[1], entry[2], nil
  for j = 1, #fields, 2 do
    if fields[j] == 'at' then
      at = tonumber(fields[j + 1])
      break
    end
  end
  if at and at >= before then
    more = 0
    break
  end
  if at then
    last = id
  end
end
if not last then
  return 0
end
-- Ids are <revision>-0: what is below <revision>-1 goes.
redis.call('XTRIM', LOG, 'MINID', string.sub(last, 1, -2) .. '1')
return more
