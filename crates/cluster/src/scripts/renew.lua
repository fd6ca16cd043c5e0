-- Renews the lease of a gateway, and says which others live.
-- KEYS: the gateway's key, the set of all gateways' ids, the counter of changes of lists. ARGV: its id, its process, the lease in ms, what it says of itself,
-- `join` or `renew`, and the beginning of every gateway's key.
local process = redis.call('HGET', KEYS[1], 'process')
if ARGV[5] == 'renew' and process and process ~= ARGV[2] then
  return {'replaced'}
end
redis.call('HSET', KEYS[1], 'process', ARGV[2], 'info', ARGV[4])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('SADD', KEYS[2], ARGV[1])
local time = redis.call('TIME')
local answer = {process == ARGV[2] and 'renewed' or 'begun', time[1] * 1000 + math.floor(time[2] / 1000), tonumber(redis.call('GET', KEYS[3]) or 0)}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[2])) do
  local info = redis.call('HGET', ARGV[6] .. id, 'info')
  if info then
    answer[#answer + 1] = id
    answer[#answer + 1] = info
  else
    redis.call('SREM', KEYS[2], id)
  end
end
return answer
