-- KEYS: digests, objects, activity. ARGV: digest.
-- Returns {name, record, activity or ""}, or {} when there is none.
local name = redis.call('HGET', KEYS[1], ARGV[1])
if not name then
  return {}
end
return { name, redis.call('HGET', KEYS[2], name) or '', redis.call('HGET', KEYS[3], name) or '' }
