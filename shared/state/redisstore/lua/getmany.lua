-- KEYS: objects, activity. ARGV: bytes, direct, then names
-- Returns {names, records, activity} for the first of the names, as many as the bytes allow. A record that does not exist
-- is ''. If there are more than direct names, it returns only how many of them the bytes allow.
local bytes, direct, names = tonumber(ARGV[1]), tonumber(ARGV[2]), { unpack(ARGV, 3) }
if #names > direct then
  return { fitting(KEYS[1], names, bytes) }
end
return page(KEYS[1], KEYS[2], names, bytes)
