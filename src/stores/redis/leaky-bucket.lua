-- Same decisions as limits/leaky-bucket.ts: a token bucket of one hit, or of the call's hits if more.
local token_bucket = load('token_bucket')
local function decide(state, hits, now, limit)
  local burst = math.max(1, math.min(hits, limit.requests))
  return token_bucket.decide(state, hits, now, limit, burst, 1)
end
return { decide = decide }
