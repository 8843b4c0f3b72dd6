-- Puts an entry in the place of the permit that was given to whoever brings it, and of nothing else.
-- KEYS: of the code. ARGV: the permit as it was put, the entry, its life in ms.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
