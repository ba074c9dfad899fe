-- ARGV: name, expected revision, length of the log
-- Returns the revision of the removal, NOTFOUND, FORMAT or CONFLICT.
local name, expected, limit = unpack(ARGV)

local previous = redis.call('HGET', OBJECTS, name)
if not previous then
  return 'NOTFOUND'
end
local was, _, _, digest, references, owner = parse(previous)
if not was then
  return 'FORMAT'
end
if was ~= expected then
  return 'CONFLICT'
end

-- A server at its memory limit refuses a script whose first write needs memory, and runs a script whose first
-- write frees some. Removal must work then, so it begins with a ZREM.
redis.call('ZREM', EXPIRES, name)
local revision = advance()
local activity = redis.call('HGET', ACTIVITY, name)
announce(revision, limit, name, activity, 'type', 'deleted', 'previous', previous)
redis.call('HDEL', OBJECTS, name)
redis.call('ZREM', NAMES, name)
noteBytes(owner, name, -#previous)
redis.call('ZREM', OWNERS, owner .. '\0' .. name)
dropTally(owner)
if digest ~= NONE then
  redis.call('HDEL', DIGESTS, digest)
end
refer(name, references, NONE)
redis.call('ZREM', CREATED, name)
if activity then
  redis.call('HDEL', ACTIVITY, name)
end
return revision
