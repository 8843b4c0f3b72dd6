-- Same decisions as limits/token-bucket.ts. State: {time of the write, used parts of the bucket at
-- that time, parts per hit}. `burst` defaults to the limit's, and `single_hits` to `burst`.
local function token_bucket(state, cost, now, limit, burst, single_hits)
  burst = burst or limit.burst
  single_hits = single_hits or burst
  if limit.requests == 0 then
    local admitted = cost < 0
    return admitted, 0, admitted and 0 or cost, 0, admitted and 0 or NEVER, nil, 0
  end
  local hit_parts, drain_parts = limit.hit_parts, limit.drain_parts
  local at, level = now, 0
  local clamped = state and state[1] > now + limit.window
  if state then
    local state_time = clamped and now or state[1]
    at = math.max(now, state_time)
    local used_parts, stored_hit_parts = state[2], state[3] or hit_parts
    if stored_hit_parts ~= hit_parts then
      used_parts = math.ceil((used_parts / stored_hit_parts) * hit_parts)
    end
    level = math.max(0, used_parts - (at - state_time) * drain_parts)
  end
  local full = burst * hit_parts
  local requested = level + math.max(1, cost) * hit_parts
  local admitted = cost < 0 or requested <= full
  local after = admitted and math.max(0, level + cost * hit_parts) or level
  local lag = at - now
  local reset = after == 0 and 0 or lag + math.ceil(after / drain_parts)
  local retry = 0
  if not admitted then
    retry = cost > burst and NEVER or lag + math.ceil((requested - full) / drain_parts)
  end
  local changed = nil
  if after ~= level or clamped then
    changed = { at, after, hit_parts }
  end
  local remaining = math.max(0, math.floor((single_hits * hit_parts - after) / hit_parts))
  return admitted, remaining, admitted and 0 or cost, reset, retry, changed, reset
end
