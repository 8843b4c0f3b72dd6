-- Decides as limits/leaky-bucket.ts does: a token bucket that holds one hit, or the hits asked for.
local function leaky_bucket(state, cost, now, limit)
  return token_bucket(state, cost, now, limit, math.max(1, math.min(cost, limit.requests)), 1)
end
