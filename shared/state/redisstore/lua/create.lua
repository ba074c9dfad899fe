-- ARGV: name, created ms, expires ms or -, digest or -, references or -, owner, object, length of the log,
-- quota of objects, quota of bytes, required name or "", its revision
-- Returns the new revision, EXISTS, STALE, TAKEN, or QUOTA with its name, what is used and what would be added.
local name, created, expires, digest, references, owner, object, limit, maxObjects, maxBytes, required, expected = unpack(ARGV)

if redis.call('HEXISTS', OBJECTS, name) == 1 then
  return 'EXISTS'
end
if required ~= '' then
  local holder = redis.call('HGET', OBJECTS, required)
  if not holder or parse(holder) ~= expected then
    return 'STALE'
  end
end
if digest ~= NONE and redis.call('HEXISTS', DIGESTS, digest) == 1 then
  return 'TAKEN'
end
local over = exceeded(owner, 1, #object, maxObjects, maxBytes)
if over then
  return over
end

local revision = advance()
local record = header(revision, created, expires, digest, references, owner) .. object
announce(revision, limit, name, false, 'type', 'created', 'record', record)
redis.call('HSET', OBJECTS, name, record)
redis.call('ZADD', NAMES, '0', name)
redis.call('ZADD', OWNERS, '0', owner .. '\0' .. name)
noteBytes(owner, name, #record)
if digest ~= NONE then
  redis.call('HSET', DIGESTS, digest, name)
end
refer(name, NONE, references)
schedule(name, NONE, expires)
redis.call('ZADD', CREATED, created, name)
return revision
