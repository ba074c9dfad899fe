-- KEYS: events. ARGV: the id before which entries go, or empty; then the texts.
-- Adds the texts in order and removes texts that are too old. The first write is an addition: a Redis that is full
-- refuses the script before it changes anything.
for i = 2, #ARGV do
  redis.call('XADD', KEYS[1], '*', 'event', ARGV[i])
end
if ARGV[1] ~= '' then
  redis.call('XTRIM', KEYS[1], 'MINID', '~', ARGV[1])
end
return 1
