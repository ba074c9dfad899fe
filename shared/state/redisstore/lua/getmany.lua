-- KEYS: objects, activity. ARGV: bytes, then names
-- Returns {names, records, activity}: of the first names, as many as the bytes allow. A record that does not exist is ''.
return page(KEYS[1], KEYS[2], { unpack(ARGV, 2) }, tonumber(ARGV[1]))
