-- Same decisions as half-window.ts, with its own storage: a hash. Number: half of the limit.
local function read(_, key)
  local stored = redis.call('HMGET', key, 'start', 'hits')
  return { tonumber(stored[1]) or -math.huge, tonumber(stored[2]) or 0, key = key }
end

local function write(state, ttl)
  local start, hits = string.format('%.0f', state[1]), string.format('%.0f', state[2])
  redis.call('HSET', state.key, 'start', start, 'hits', hits)
  redis.call('PEXPIRE', state.key, ttl)
end

local function decide(state, hits, now, limit)
  local window, half = limit.window, limit[1]
  local clamped = state[1] > now + window
  local count = now < state[1] + window and state[2] or 0
  local start = count > 0 and not clamped and state[1] or now
  local admitted = hits < 0 or count + math.max(1, hits) <= half
  local after = admitted and math.max(0, count + hits) or count
  local reset = after == 0 and 0 or start + window - now
  local retry = math.max(1, hits) > half and NEVER or reset
  local changed = nil
  if after ~= count or clamped then
    changed = { start, after, key = state.key }
  end
  return admitted, math.max(0, half - after), admitted and 0 or hits, reset, retry, changed, reset
end
return { decide = decide, read = read, write = write }
