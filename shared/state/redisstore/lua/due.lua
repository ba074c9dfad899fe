-- KEYS: the index (expires or created), objects, activity
-- ARGV: until ms, how many to skip, limit, bytes
-- Returns {names, records, activity}. The records that have been due for the longest time come first.
local until_ms, skip, limit, bytes = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local names = redis.call('ZRANGE', KEYS[1], '-inf', until_ms, 'BYSCORE', 'LIMIT', skip, limit)
return page(KEYS[2], KEYS[3], names, bytes)
