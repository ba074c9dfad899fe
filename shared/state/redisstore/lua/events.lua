-- KEYS: rev, log. ARGV: revision, limit, bytes
-- Returns {the current revision, entries}. The entries are those after the given revision, until they have more than the given
-- bytes together; at least one.
local REVISION, LOG = KEYS[1], KEYS[2]
local after, limit, bytes = '(' .. ARGV[1] .. '-0', tonumber(ARGV[2]), tonumber(ARGV[3])

local entries, used, largest = {}, 0, 0
while #entries < limit and used <= bytes do
  local count = math.min(batch(largest, bytes - used), limit - #entries)
  local found = redis.call('XRANGE', LOG, after, '+', 'COUNT', count)
  for _, entry in ipairs(found) do
    local size = 0
    for _, value in ipairs(entry[2]) do
      size = size + #value
    end
    used, largest = used + size, math.max(largest, size)
    if used > bytes and #entries > 0 then
      break
    end
    entries[#entries + 1] = entry
    after = '(' .. entry[1]
  end
  if #found < count then
    break
  end
end
return { redis.call('GET', REVISION) or '1', entries }
