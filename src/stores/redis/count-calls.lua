-- The main body of the script: counts the hits of several calls in sequence, each call as in
-- limits/decide-together.ts. Reads every counter at the start and writes the changed ones at the
-- end, so that the calls of a batch share both.
-- ARGV: the time in microseconds, or '' for the server's clock; the number of limits; per limit
-- veto, algorithm, requests, window, burst, deny_consumes, the number of script numbers of the
-- algorithm, and those; then per call the number of updates, and per update the index of its
-- limit and its hits.
-- KEYS: one per update.
-- Reply: per update remaining, reset, over and retry (0 = admitted, -1 = never); then the time.
-- Durations are in microseconds; longer ones than COUNT_MAX, 142 years, are reduced to COUNT_MAX.
-- Each algorithm has `decide(state, hits, now, limit)`. Its state is two or three whole numbers, or
-- what its own `read(value, key)` returns, never nil, and its own `write(state, ttl)` stores.
local argv, keys = ARGV, KEYS
local now = tonumber(argv[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local function read_numbers(value)
  if not value or #value > 80 then return nil end
  local first, second, third = string.match(value, '^(%d+) (%d+) ?(%d*)$')
  if not first then return nil end
  return { tonumber(first), tonumber(second), tonumber(third) }
end

local limits, at = {}, 3
for number = 1, tonumber(argv[2]) do
  local algorithm, numbers = load(argv[at + 1]), tonumber(argv[at + 6])
  local limit = {
    decide = algorithm.decide,
    read = algorithm.read or read_numbers,
    write = algorithm.write,
    veto = argv[at],
    requests = tonumber(argv[at + 2]),
    window = tonumber(argv[at + 3]),
    burst = tonumber(argv[at + 4]),
    deny_consumes = argv[at + 5] == '1',
    unpack(argv, at + 7, at + 6 + numbers),
  }
  for i = 1, numbers do
    limit[i] = tonumber(limit[i])
  end
  limits[number], at = limit, at + 7 + numbers
end

-- MGET returns nil for values that are not strings; an algorithm's own `read` reads them on demand.
local KEYS_PER_CALL = 1000
local values = {}
for from = 1, #keys, KEYS_PER_CALL do
  local some = redis.call('MGET', unpack(keys, from, math.min(#keys, from + KEYS_PER_CALL - 1)))
  for i = 1, #some do
    values[from + i - 1] = some[i]
  end
end

-- The state of each counter; false means none.
local states = {}
local function state_of(place, key, limit)
  local state = states[key]
  if state == nil then
    state = limit.read(values[place], key) or false
    states[key] = state
  end
  return state or nil
end

local decisions = {}
-- Decides the `count` updates of a call; their arguments follow `argv[from]`, their keys
-- `keys[place]`. If `call_is_denied`, limits that do not count denied hits count 0 hits. Returns
-- the changed counters, and whether the call is denied.
local function decide(count, from, place, call_is_denied)
  local draft, is_denied, together, denied_together = {}, false, 0, 0
  for i = 1, count do
    local limit, hits = limits[tonumber(argv[from + 2 * i - 1])], tonumber(argv[from + 2 * i])
    if call_is_denied and hits > 0 and not limit.deny_consumes then hits = 0 end
    local key = keys[place + i]
    local admitted, remaining, over, reset, retry, changed, expires =
      limit.decide(draft[key] or state_of(place + i, key, limit), hits, now, limit)
    if changed then
      changed.expires, changed.write = expires, limit.write
      draft[key] = changed
    end
    local decision = call_is_denied and decisions[i] or { over, admitted and 0 or retry }
    decision[3], decision[4] = remaining, reset
    decisions[i] = decision
    if limit.veto == 'together' then together = together + 1 end
    if not admitted then
      if limit.veto == 'alone' then is_denied = true end
      if limit.veto == 'together' then denied_together = denied_together + 1 end
    end
  end
  return draft, is_denied or (together > 0 and denied_together == together)
end

local reply, replied, place, dirty = {}, 0, 0, {}
while at <= #argv do
  local count = tonumber(argv[at])
  local draft, is_denied = decide(count, at, place, false)
  if is_denied then draft = decide(count, at, place, true) end
  for key, state in pairs(draft) do
    dirty[key] = state
    states[key] = (state.write or state.expires > 0) and state
  end
  for i = 1, count do
    local decision = decisions[i]
    reply[replied + 1] = decision[3]
    reply[replied + 2] = math.min(COUNT_MAX, decision[4])
    reply[replied + 3] = decision[1]
    reply[replied + 4] = math.min(COUNT_MAX, decision[2])
    replied = replied + 4
  end
  at, place = at + 1 + 2 * count, place + count
end

for key, state in pairs(dirty) do
  local ttl = string.format('%.0f', math.ceil(math.min(COUNT_MAX, state.expires) / 1000))
  if state.expires <= 0 then
    redis.call('DEL', key)
  elseif state.write then
    state.write(state, ttl)
  else
    local shape = state[3] and '%.0f %.0f %.0f' or '%.0f %.0f'
    redis.call('SET', key, string.format(shape, state[1], state[2], state[3]), 'PX', ttl)
  end
end
reply[replied + 1] = now
return reply
