-- ARGV: name, created ms, expires ms or -, digest or -, references or -, owner, object, length of the log
-- Returns the new revision, EXISTS or TAKEN.
local name, created, expires, digest, references, owner, object, limit = unpack(ARGV)

if redis.call('HEXISTS', OBJECTS, name) == 1 then
  return 'EXISTS'
end
if digest ~= NONE and redis.call('HEXISTS', DIGESTS, digest) == 1 then
  return 'TAKEN'
end

local revision = advance()
local record = header(revision, created, expires, digest, references, owner) .. object
announce(revision, limit, name, 'type', 'created', 'record', record)
redis.call('HSET', OBJECTS, name, record)
redis.call('ZADD', NAMES, 0, name)
redis.call('ZADD', OWNERS, 0, owner .. '\0' .. name)
if digest ~= NONE then
  redis.call('HSET', DIGESTS, digest, name)
end
refer(name, NONE, references)
schedule(name, expires)
redis.call('ZADD', CREATED, created, name)
return revision
