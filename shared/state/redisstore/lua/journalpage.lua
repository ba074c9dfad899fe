-- KEYS: events. ARGV: the upper end of the ids, the oldest id, the number of texts, their bytes.
-- Returns "more" or "end", then the id and the text of each entry, the newest first. Entries are read one by one: a text may be
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
