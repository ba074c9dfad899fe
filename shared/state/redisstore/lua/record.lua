-- Put before every script that writes. It names the keys in the order of keys.all() and reads and
-- makes headers; see record.go for the format. No script decodes JSON: cjson rounds integers.
local REVISION, OBJECTS, NAMES, OWNERS, DIGESTS, EXPIRES, CREATED, ACTIVITY, REFERENCES, LOG =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]

local FORMAT, NONE = '1', '-'

-- The time of the write in milliseconds: the last argument of every script that writes.
local NOW = ARGV[#ARGV]

-- The header's values as strings; nil when the record has another format. Revisions are compared as
-- strings: numbers are doubles here.
local function parse(record)
  return string.match(record, '^' .. FORMAT .. ' (%d+) (%-?%d+) ([^ \n]+) ([^ \n]+) ([^ \n]+) ([^\n]*)\n')
end

local function header(revision, created, expires, digest, references, owner)
  return table.concat({ FORMAT, revision, created, expires, digest, references, owner }, ' ') .. '\n'
end

-- Moves the revision on, from 1 where there is none yet. tostring would print 1e+14.
local function advance()
  local revision = redis.call('INCR', REVISION)
  if revision == 1 then
    revision = redis.call('INCR', REVISION)
  end
  return string.format('%.0f', revision)
end

-- Adds the event of a revision: its time, the change's fields, then the activity if there is any. XADD refuses an
-- id that is not above the last one, so this comes before the state changes.
local function announce(revision, limit, name, ...)
  local fields = { ... }
  local activity = redis.call('HGET', ACTIVITY, name)
  if activity then
    fields[#fields + 1] = 'activity'
    fields[#fields + 1] = activity
  end
  redis.call('XADD', LOG, 'MAXLEN', '~', limit, revision .. '-0', 'at', NOW, 'name', name, unpack(fields))
end

local function schedule(name, expires)
  if expires == NONE then
    redis.call('ZREM', EXPIRES, name)
  else
    redis.call('ZADD', EXPIRES, expires, name)
  end
end

-- Keeps the index of references: what a record referred to before, and what it refers to now. A leading dash
-- of a list is doubled in headers.
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
        redis.call('ZADD', REFERENCES, 0, uid .. '\0' .. name)
      else
        redis.call('ZREM', REFERENCES, uid .. '\0' .. name)
      end
    end
  end
  each('ZREM', before)
  each('ZADD', after)
end
