-- Same decisions as limits/leaky-bucket.ts: a token bucket of one hit, or of the cost if higher.
local function leaky_bucket(state, cost, now, limit)
  return token_bucket(state, cost, now, limit, math.max(1, math.min(cost, limit.requests)), 1)
end
