-- Which gateways live.
-- KEYS: the set of all gateways' ids, the counter of changes of lists. ARGV: the beginning of every gateway's key.
local time = redis.call('TIME')
local answer = {'seen', time[1] * 1000 + math.floor(time[2] / 1000), tonumber(redis.call('GET', KEYS[2]) or 0)}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local info = redis.call('HGET', ARGV[1] .. id, 'info')
  if info then
    answer[#answer + 1] = id
    answer[#answer + 1] = info
  end
end
return answer
