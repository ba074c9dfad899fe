-- KEYS: events. ARGV: the newest id or what comes before it, the oldest id, the number of texts, their bytes.
-- Returns "more" or "end", then for each text its id and itself, the newest first. Entries are read one by one: a text may be
-- as large as all others together.
local found, bytes, newest = {'end'}, 0, ARGV[1]
local most, limit = 2 * tonumber(ARGV[3]), tonumber(ARGV[4])
while true do
  local entry = redis.call('XREVRANGE', KEYS[1], newest, ARGV[2], 'COUNT', 1)[1]
  if not entry then
    return found
  end
  local text = entry[2][2]
  bytes = bytes + #text
  if #found > 1 and (bytes > limit or #found > most) then
    found[1] = 'more'
    return found
  end
  found[#found + 1] = entry[1]
  found[#found + 1] = text
  newest = '(' .. entry[1]
end
