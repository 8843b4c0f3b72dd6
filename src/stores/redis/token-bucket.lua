-- Same decisions as limits/token-bucket.ts. State: {time of the write, used parts of the bucket at
-- that time, parts per hit}. `burst` defaults to the limit's, and `room` to `burst`.
local function token_bucket(state, cost, now, limit, burst, room)
  burst = burst or limit.burst
  room = room or burst
  if limit.requests == 0 then
    local admitted = cost < 0
    return admitted, 0, admitted and 0 or cost, 0, admitted and 0 or NEVER, nil, 0
  end
  local hit_parts, drain_parts = limit.hit_parts, limit.drain_parts
  local at, level = now, 0
  local clamped = state and state[1] > now + limit.window
  if state then
    local written_at = clamped and now or state[1]
    at = math.max(now, written_at)
    local written, of_parts = state[2], state[3] or hit_parts
    if of_parts ~= hit_parts then
      written = math.ceil((written / of_parts) * hit_parts)
    end
    level = math.max(0, written - (at - written_at) * drain_parts)
  end
  local full = burst * hit_parts
  local asked = level + math.max(1, cost) * hit_parts
  local admitted = cost < 0 or asked <= full
  local after = admitted and math.max(0, level + cost * hit_parts) or level
  local lag = at - now
  local reset = after == 0 and 0 or lag + math.ceil(after / drain_parts)
  local retry = 0
  if not admitted then
    retry = cost > burst and NEVER or lag + math.ceil((asked - full) / drain_parts)
  end
  local changed = nil
  if after ~= level or clamped then
    changed = { at, after, hit_parts }
  end
  local remaining = math.max(0, math.floor((room * hit_parts - after) / hit_parts))
  return admitted, remaining, admitted and 0 or cost, reset, retry, changed, reset
end
