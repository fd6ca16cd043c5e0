-- Ends the lease of a gateway, if this process still has it.
-- KEYS: the gateway's key, the set of all gateways' ids. ARGV: its id, its process.
if redis.call('HGET', KEYS[1], 'process') == ARGV[2] then
  redis.call('DEL', KEYS[1])
  redis.call('SREM', KEYS[2], ARGV[1])
end
return 1
