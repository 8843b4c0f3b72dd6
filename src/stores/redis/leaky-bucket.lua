-- Same decisions as limits/leaky-bucket.ts: a token bucket of one hit, or of the cost if higher.
local token_bucket = load('token_bucket')
local function decide(state, cost, now, limit)
  local burst = math.max(1, math.min(cost, limit.requests))
  return token_bucket.decide(state, cost, now, limit, burst, 1)
end
return { decide = decide }
