-- Adds and removes entries of a list, and counts that it changed. What was removed stays removed.
-- KEYS: the list, the counter. ARGV: `list` or `remove`, the id, and the text, again and again.
local changed = 0
for at = 1, #ARGV, 3 do
  if ARGV[at] == 'remove' then
    redis.call('HSET', KEYS[1], ARGV[at + 1], ARGV[at + 2])
    changed = 1
  else
    changed = changed + redis.call('HSETNX', KEYS[1], ARGV[at + 1], ARGV[at + 2])
  end
end
if changed > 0 then
  redis.call('INCR', KEYS[2])
end
return changed
