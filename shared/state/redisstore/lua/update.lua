-- ARGV: name, expected revision, created ms, expires ms or -, digest or -, references or -, owner, object, length of the log
-- Returns the new revision, NOTFOUND, FORMAT, CONFLICT or TAKEN.
local name, expected, created, expires, digest, references, owner, object, limit = unpack(ARGV)

local previous = redis.call('HGET', OBJECTS, name)
if not previous then
  return 'NOTFOUND'
end
local was, _, _, oldDigest, oldReferences, oldOwner = parse(previous)
if not was then
  return 'FORMAT'
end
if was ~= expected then
  return 'CONFLICT'
end
if digest ~= NONE and digest ~= oldDigest and redis.call('HEXISTS', DIGESTS, digest) == 1 then
  return 'TAKEN'
end

local revision = advance()
local record = header(revision, created, expires, digest, references, owner) .. object
announce(revision, limit, name, 'type', 'updated', 'record', record, 'previous', previous)
redis.call('HSET', OBJECTS, name, record)
if owner ~= oldOwner then
  redis.call('ZREM', OWNERS, oldOwner .. '\0' .. name)
  redis.call('ZADD', OWNERS, 0, owner .. '\0' .. name)
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
schedule(name, expires)
redis.call('ZADD', CREATED, created, name)
return revision
