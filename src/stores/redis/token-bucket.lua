-- Same decisions as limits/token-bucket.ts. State: {time of the write, level at that time,
-- hit_units}. Script numbers: hit_units, drain_units. `burst` defaults to the limit's, and
-- `single_hits` to `burst`.
local function decide(state, hits, now, limit, burst, single_hits)
  burst = burst or limit.burst
  single_hits = single_hits or burst
  if limit.requests == 0 then
    local admitted = hits < 0
    return admitted, 0, admitted and 0 or hits, 0, admitted and 0 or NEVER, nil, 0
  end
  local hit_units, drain_units = limit[1], limit[2]
  local at, drained = now, 0
  local clamped = state and state[1] > now + limit.window
  if state then
    local state_time = clamped and now or state[1]
    at = math.max(now, state_time)
    local used_units, stored_hit_units = state[2], state[3] or hit_units
    if stored_hit_units ~= hit_units then
      used_units = math.ceil((used_units / stored_hit_units) * hit_units)
    end
    drained = math.max(0, used_units - (at - state_time) * drain_units)
  end
  local level = math.min(limit.burst * hit_units, drained) -- less if the limit was lowered
  local full = burst * hit_units
  local requested = level + math.max(1, hits) * hit_units
  local admitted = hits < 0 or requested <= full
  local after = admitted and math.max(0, level + hits * hit_units) or level
  local lag = at - now
  local reset = after == 0 and 0 or lag + math.ceil(after / drain_units)
  local retry = 0
  if not admitted then
    retry = hits > burst and NEVER or lag + math.ceil((requested - full) / drain_units)
  end
  local changed = nil
  if after ~= drained or clamped then
    changed = { at, after, hit_units }
  end
  local remaining = math.max(0, math.floor((single_hits * hit_units - after) / hit_units))
  return admitted, remaining, admitted and 0 or hits, reset, retry, changed, reset
end
return { decide = decide }
