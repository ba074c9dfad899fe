-- Put before the scripts that read a page.

-- How many records to read at once: as many as fit if no record is larger than the largest so far. Only a few, because a page
-- may read more than it returns: the size of a record is known only once it is read.
local function batch(largest, left)
  if largest == 0 then
    return 2
  end
  return math.max(1, math.min(8, math.floor(left / largest)))
end

-- Reads records in the order of their names, until they have more than the given bytes together; at least one. Returns
-- {names, records, activity}.
local function page(objects, activity, names, bytes)
  local read, records, used, largest = {}, {}, 0, 0
  while #read < #names and used <= bytes do
    local from = #read
    local count = math.min(batch(largest, bytes - used), #names - from)
    local found = redis.call('HMGET', objects, unpack(names, from + 1, from + count))
    for i = 1, count do
      local record = found[i] or ''
      local size = #record
      used = used + size
      if used > bytes and from + i > 1 then
        break
      end
      if size > largest then
        largest = size
      end
      read[from + i], records[from + i] = names[from + i], record
    end
  end
  local times = {}
  if #read > 0 then
    times = redis.call('HMGET', activity, unpack(read))
    for i = 1, #read do
      times[i] = times[i] or ''
    end
  end
  return { read, records, times }
end

-- Returns how many of the first names page would read.
local function fitting(objects, names, bytes)
  local used = 0
  for i, name in ipairs(names) do
    used = used + redis.call('HSTRLEN', objects, name)
    if used > bytes and i > 1 then
      return i - 1
    end
  end
  return #names
end
