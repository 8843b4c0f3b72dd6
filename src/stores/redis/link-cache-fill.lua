-- Replaces the caller's lease with an entry; does nothing if the key has any other value.
-- KEYS: the code's key. ARGV: the lease's value, the entry, its TTL in ms.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
