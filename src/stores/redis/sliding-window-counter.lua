-- Same decisions as limits/sliding-window-counter.ts. State: {start of the window, hits in it, hits
-- in the previous window}.
local function decide(state, hits, now, limit)
  local requests, window = limit.requests, limit.window
  local start, current, previous = now - now % window, 0, 0
  local clamped = state and state[1] > now + window
  if state then
    local stored_start = clamped and start or state[1]
    start = math.max(start, stored_start)
    local passed = (start - stored_start) / window
    if passed == 0 then
      current, previous = state[2], state[3] or 0
    elseif passed == 1 then
      previous = state[2]
    end
  end
  local elapsed = now - start -- negative if the clock was set back
  local overlapping = (previous * (window - math.max(0, elapsed))) / window
  local requested = math.max(1, hits)
  local admitted = hits < 0 or current + overlapping + requested <= requests
  local after = admitted and math.max(0, current + hits) or current
  local reset = 0
  if after > 0 then
    reset = 2 * window - elapsed
  elseif previous > 0 then
    reset = window - elapsed
  end
  local retry = 0
  if not admitted and requested > requests then
    retry = NEVER
  elseif not admitted then
    local available, fit = requests - current - requested, window
    if available >= 0 then
      fit = previous <= available and elapsed
        or math.max(elapsed, math.ceil(window - (available * window) / previous))
    end
    if fit < window then
      retry = math.max(1, fit - elapsed) -- rounding; 0 means admitted
    else
      -- In the next window this one is the previous window.
      available, fit = requests - requested, 0
      if current > available then
        fit = math.max(0, math.ceil(window - (available * window) / current))
      end
      retry = window - elapsed + fit
    end
  end
  local changed = nil
  if after ~= current or clamped then
    changed = { start, after, previous }
  end
  local remaining = math.max(0, math.floor(requests - (after + overlapping)))
  local expires = start + 2 * window - now
  return admitted, remaining, admitted and 0 or hits, reset, retry, changed, expires
end
return { decide = decide }
