-- Put before every script that writes. It names the keys in the order of keys.all() and reads and
-- makes headers; see record.go for the format. No script decodes JSON: cjson rounds integers. Arguments of commands are texts where they
-- can be: a number is printed with a format.
local REVISION, OBJECTS, NAMES, OWNERS, DIGESTS, EXPIRES, CREATED, ACTIVITY, REFERENCES, LOG, BYTES, SERVER =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11], KEYS[12]

local FORMAT, NONE = '1', '-'

-- The last arguments of every script that writes: the time of the write in milliseconds, and what the log may hold: its
-- bytes, and the events that it has however large they are.
local NOW, LOG_BYTES, LOG_EVENTS = ARGV[#ARGV - 2], tonumber(ARGV[#ARGV - 1]), tonumber(ARGV[#ARGV])

-- The header's values as strings; nil when the record has another format. Revisions are compared as
-- strings: numbers are doubles here.
local function parse(record)
  return string.match(record, '^1 (%d+) (%-?%d+) ([^ \n]+) ([^ \n]+) ([^ \n]+) ([^\n]*)\n')
end

local function header(revision, created, expires, digest, references, owner)
  return table.concat({ FORMAT, revision, created, expires, digest, references, owner }, ' ') .. '\n'
end

-- A server may start with an older copy of the state: a replica that was promoted, a log that lost its end, a backup. Readers
-- may have seen revisions that the server does not have, and it must not use these again. If the last write was at another server,
-- the first write therefore leaves out JUMP revisions, unless numbers would lose their precision. Its event records the revision
-- that it follows.
local JUMP, PRECISE = 1000000000, 2 ^ 52
local follows

-- The id that the server makes at its start; nil for a server that does not report it, and for a user who may not ask.
local function thisServer()
  local about = redis.pcall('INFO', 'server')
  -- A plain search takes a fifth of the time of a pattern.
  local _, last = string.find(type(about) == 'string' and about or '', 'run_id:', 1, true)
  return last and string.match(about, '^%x+', last + 1) or nil
end

-- Increases the revision, from 1 if there is none yet. tostring would print 1e+14.
local function advance()
  local server = thisServer()
  local last = server and redis.call('GET', SERVER)
  if server and last ~= server then
    redis.call('SET', SERVER, server)
    local revision = last and tonumber(redis.call('GET', REVISION) or nil)
    if revision and revision < PRECISE then
      follows = string.format('%.0f', revision)
      return string.format('%.0f', redis.call('INCRBY', REVISION, JUMP))
    end
  end
  local revision = redis.call('INCR', REVISION)
  if revision == 1 then
    revision = redis.call('INCR', REVISION)
  end
  return string.format('%.0f', revision)
end

-- Adds the event of a revision: its time, the change's fields, the activity if it is not false, and the revision that it follows. XADD
-- refuses an id that is not above the last one, so this comes before the state changes.
local function announce(revision, limit, name, activity, ...)
  local fields = { ... }
  if activity then
    fields[#fields + 1] = 'activity'
    fields[#fields + 1] = activity
  end
  if follows then
    fields[#fields + 1] = 'follows'
    fields[#fields + 1] = follows
  end
  -- A large event shortens the log, so that the log keeps about its maximum of bytes. Smaller events let it grow again.
  local size = 0
  for _, value in ipairs(fields) do
    size = size + #value
  end
  local fits = math.max(LOG_EVENTS, math.floor(LOG_BYTES / size))
  if fits < tonumber(limit) then
    limit = fits
  end
  redis.call('XADD', LOG, 'MAXLEN', '~', limit, revision .. '-0', 'at', NOW, 'name', name, unpack(fields))
end

-- Updates the index of due times, from the time before to the time now.
local function schedule(name, before, expires)
  if before == expires then
    return
  end
  if expires == NONE then
    redis.call('ZREM', EXPIRES, name)
  else
    redis.call('ZADD', EXPIRES, expires, name)
  end
end

-- Updates the index of references, from the uids before to the uids now. A leading dash of a list is doubled in
-- headers.
local function refer(name, before, after)
  if before == after then
    return
  end
  local function each(command, references)
    if references == NONE then
      return
    end
    if string.sub(references, 1, 1) == '-' then
      references = string.sub(references, 2)
    end
    for uid in string.gmatch(references, '[^,]+') do
      if command == 'ZADD' then
        redis.call('ZADD', REFERENCES, '0', uid .. '\0' .. name)
      else
        redis.call('ZREM', REFERENCES, uid .. '\0' .. name)
      end
    end
  end
  each('ZREM', before)
  each('ZADD', after)
end

-- A tally is the number of bytes of an owner's records. A write cannot read all records of a large owner, so each write with a
-- quota of bytes counts COUNTED more records. A tally is the text "<bytes> <ms of the last complete count>", and during a count
-- also " <bytes counted> <last name counted>". Every write updates it. Until the first count of an owner is complete (ms is 0),
-- the tally is the number of bytes counted so far. A later count begins RECOUNT ms after the last one, because builds without
-- tallies may write as well.
local COUNTED, RECOUNT = 500, 3600000

-- The tallies that this script has read or written, by owner; false for an owner without one.
local tallies = {}

local function readTally(owner)
  if tallies[owner] == nil then
    local text = redis.call('HGET', BYTES, owner) or ''
    local bytes, at, rest = string.match(text, '^(%d+) (%d+)(.*)$')
    local sum, last = string.match(rest or '', '^ (%d+) (.+)$')
    tallies[owner] = bytes and { bytes = tonumber(bytes), at = tonumber(at), sum = sum and tonumber(sum), last = last }
      or false
  end
  return tallies[owner]
end

local function writeTally(owner, tally)
  local text = string.format('%.0f %.0f', tally.bytes, tally.at)
  if tally.sum then
    text = text .. string.format(' %.0f ', tally.sum) .. tally.last
  end
  redis.call('HSET', BYTES, owner, text)
  tallies[owner] = tally
end

-- Continues the count of an owner, or begins one, and returns the owner's bytes.
local function countBytes(owner)
  local tally = readTally(owner) or { bytes = 0, at = 0 }
  local from
  if tally.sum then
    from = '(' .. owner .. '\0' .. tally.last
  elseif tally.at > 0 and tonumber(NOW) - tally.at < RECOUNT then
    return tally.bytes
  else
    from, tally.sum = '[' .. owner .. '\0', 0
  end
  local members = redis.call('ZRANGE', OWNERS, from, '(' .. owner .. '\1', 'BYLEX', 'LIMIT', 0, COUNTED)
  for _, member in ipairs(members) do
    tally.last = string.sub(member, #owner + 2)
    tally.sum = tally.sum + redis.call('HSTRLEN', OBJECTS, tally.last)
  end
  if tally.at == 0 then
    tally.bytes = tally.sum
  end
  if #members < COUNTED then
    tally = { bytes = tally.sum, at = tonumber(NOW) }
  end
  writeTally(owner, tally)
  return tally.bytes
end

-- Adds the growth of a record to the tally; it is negative if the record has shrunk. The name must be in OWNERS.
local function noteBytes(owner, name, change)
  local tally = change ~= 0 and readTally(owner)
  if not tally then
    return
  end
  -- There is no range from a name to an earlier one.
  local counted = not tally.sum
    or redis.call('ZLEXCOUNT', OWNERS, '(' .. owner .. '\0' .. tally.last, '[' .. owner .. '\0' .. name) == 0
  if tally.sum and counted then
    tally.sum = math.max(tally.sum + change, 0)
  end
  if counted or tally.at > 0 then
    tally.bytes = math.max(tally.bytes + change, 0)
  end
  writeTally(owner, tally)
end

local function objectsOf(owner)
  return redis.call('ZLEXCOUNT', OWNERS, '[' .. owner .. '\0', '(' .. owner .. '\1')
end

-- Removes the tally of an owner without records.
local function dropTally(owner)
  if readTally(owner) and objectsOf(owner) == 0 then
    redis.call('HDEL', BYTES, owner)
  end
end

-- Returns the answer for a write that would exceed a quota; nil for a write within it. A quota of 0 sets no bound.
local function exceeded(owner, newObjects, newBytes, maxObjects, maxBytes)
  maxObjects, maxBytes = tonumber(maxObjects), tonumber(maxBytes)
  if maxObjects > 0 and newObjects > 0 then
    local used = objectsOf(owner)
    if used + newObjects > maxObjects then
      return string.format('QUOTA objects %.0f %.0f', used, newObjects)
    end
  end
  if maxBytes > 0 and newBytes > 0 then
    local used = countBytes(owner)
    if used + newBytes > maxBytes then
      return string.format('QUOTA bytes %.0f %.0f', used, newBytes)
    end
  end
end
