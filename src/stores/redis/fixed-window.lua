-- Same decisions as limits/fixed-window.ts. State: {start of the window, hits in it}.
local function decide(state, hits, now, limit)
  local requests, consumes = limit.requests, limit.deny_consumes
  local start, count = now - now % limit.window, 0
  local clamped = state and state[1] > now + limit.window
  if clamped then
    count = state[2]
  elseif state and state[1] >= start then
    start, count = state[1], state[2]
  end
  local after = math.min(COUNT_MAX, math.max(0, count + hits))
  local requested = (hits == 0 and not consumes) and count + 1 or after
  local admitted = hits < 0 or requested <= requests
  local stored = (admitted or consumes) and after or count
  local reset = start + limit.window - now
  local over, retry = 0, 0
  if not admitted then
    over = math.min(hits, consumes and after - requests or hits)
    retry = hits <= requests and reset or NEVER
  end
  local changed = nil
  if stored ~= count or clamped then
    changed = { start, stored }
  end
  return admitted, math.max(0, requests - stored), over, reset, retry, changed, reset
end
return { decide = decide }
