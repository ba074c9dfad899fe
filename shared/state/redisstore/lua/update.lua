-- ARGV: name, expected revision, created ms, expires ms or -, digest or -, references or -, owner, object,
-- length of the log, quota of objects, quota of bytes
-- Returns the new revision, NOTFOUND, FORMAT, CONFLICT, TAKEN, or QUOTA with its name, what is used and what would be added.
local name, expected, created, expires, digest, references, owner, object, limit, maxObjects, maxBytes = unpack(ARGV)

local previous = redis.call('HGET', OBJECTS, name)
if not previous then
  return 'NOTFOUND'
end
local was, oldCreated, oldExpires, oldDigest, oldReferences, oldOwner = parse(previous)
if not was then
  return 'FORMAT'
end
if was ~= expected then
  return 'CONFLICT'
end
if digest ~= NONE and digest ~= oldDigest and redis.call('HEXISTS', DIGESTS, digest) == 1 then
  return 'TAKEN'
end
local newObjects, newBytes = 1, #object
if owner == oldOwner then
  newObjects, newBytes = 0, #object - (#previous - string.find(previous, '\n', 1, true))
end
local over = exceeded(owner, newObjects, newBytes, maxObjects, maxBytes)
if over then
  return over
end

local revision = advance()
local record = header(revision, created, expires, digest, references, owner) .. object
announce(revision, limit, name, redis.call('HGET', ACTIVITY, name), 'type', 'updated', 'record', record, 'previous', previous)
redis.call('HSET', OBJECTS, name, record)
if owner == oldOwner then
  noteBytes(owner, name, #record - #previous)
else
  noteBytes(oldOwner, name, -#previous)
  redis.call('ZREM', OWNERS, oldOwner .. '\0' .. name)
  dropTally(oldOwner)
  redis.call('ZADD', OWNERS, '0', owner .. '\0' .. name)
  noteBytes(owner, name, #record)
end
if digest ~= oldDigest then
  if oldDigest ~= NONE then
    redis.call('HDEL', DIGESTS, oldDigest)
  end
  if digest ~= NONE then
    redis.call('HSET', DIGESTS, digest, name)
  end
end
refer(name, oldReferences, references)
schedule(name, oldExpires, expires)
if created ~= oldCreated then
  redis.call('ZADD', CREATED, created, name)
end
return revision
