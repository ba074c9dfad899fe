-- ARGV: name, digest or -, activity ms or "", expires ms or ""
-- Returns OK, also when there is nothing to do, or FORMAT. Writes no event and does not change the revision.
local name, digest, activity, expires = unpack(ARGV)

local record = redis.call('HGET', OBJECTS, name)
if not record then
  return 'OK'
end
local revision, created, oldExpires, oldDigest, references, owner = parse(record)
if not revision then
  return 'FORMAT'
end
if oldDigest ~= digest then
  return 'OK'
end

if activity ~= '' then
  -- A late report of an earlier use must not bring an earlier due time back either.
  local last = redis.call('HGET', ACTIVITY, name)
  if last and tonumber(last) > tonumber(activity) then
    return 'OK'
  end
  redis.call('HSET', ACTIVITY, name, activity)
end
if expires ~= '' and expires ~= oldExpires then
  local object = string.sub(record, string.find(record, '\n', 1, true) + 1)
  local touched = header(revision, created, expires, digest, references, owner) .. object
  redis.call('HSET', OBJECTS, name, touched)
  noteBytes(owner, name, #touched - #record)
  schedule(name, oldExpires, expires)
end
return 'OK'
