-- The main body of the script: counts the hits of several calls in sequence, each call as in
-- limits/decide-together.ts. Reads every counter at the start and writes the changed ones at the
-- end, so that the calls of a batch share both.
-- ARGV: the time in microseconds, or '' for the server's clock; the number of limits; per limit
-- algorithm, requests, window, burst, units per hit, units per microsecond, deny_consumes, veto;
-- then per call the number of counts, and per count its limit and its cost. KEYS: one per count.
-- Reply: per count remaining, reset, over, wait (0 = admitted, -1 = never), and last the time;
-- a duration beyond COUNT_MAX, 142 years, is returned and stored as COUNT_MAX.
local argv, keys = ARGV, KEYS
local now = tonumber(argv[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local limits, at = {}, 3
for number = 1, tonumber(argv[2]) do
  local name = argv[at]
  limits[number] = {
    decide = algorithms[name],
    is_log = name == 'sliding_window_log',
    requests = tonumber(argv[at + 1]),
    window = tonumber(argv[at + 2]),
    burst = tonumber(argv[at + 3]),
    hit_units = tonumber(argv[at + 4]),
    drain_units = tonumber(argv[at + 5]),
    deny_consumes = argv[at + 6] == '1',
    veto = argv[at + 7],
  }
  at = at + 8
end

-- MGET returns nil for values that are not strings; a log's list is read on demand.
local KEYS_PER_CALL = 1000
local values = {}
for from = 1, #keys, KEYS_PER_CALL do
  local some = redis.call('MGET', unpack(keys, from, math.min(#keys, from + KEYS_PER_CALL - 1)))
  for i = 1, #some do
    values[from + i - 1] = some[i]
  end
end

local function read_log(key)
  local size = redis.pcall('LLEN', key)
  local log = { key = key, stored = size, first = 0, last = size, added = 0, newest = 0 }
  if type(size) == 'number' then
    if size == 0 then return log end
    log.newest = tonumber(redis.call('LINDEX', key, -1))
    if log.newest then return log end
  end
  log.stored, log.last, log.newest = 1, 0, 0 -- not a log: counts as absent and is overwritten
  return log
end

local function read_numbers(value)
  if not value or #value > 80 then return nil end
  local first, second, third = string.match(value, '^(%d+) (%d+) ?(%d*)$')
  if not first then return nil end
  return { tonumber(first), tonumber(second), tonumber(third) }
end

-- The state of each counter; false means none.
local states = {}
local function state_of(place, key, limit)
  local state = states[key]
  if state == nil then
    if limit.is_log then state = read_log(key) else state = read_numbers(values[place]) or false end
    states[key] = state
  end
  return state or nil
end

local decisions = {}
-- Decides `count` counts, with arguments after `from`. With `call_is_denied`, omits the hits that
-- a denied call does not consume. Returns the changed counters, and whether the call is denied.
local function decide(count, from, place, call_is_denied)
  local draft, is_denied, together, denied_together = {}, false, 0, 0
  for i = 1, count do
    local limit, cost = limits[tonumber(argv[from + 2 * i - 1])], tonumber(argv[from + 2 * i])
    if call_is_denied and cost > 0 and not limit.deny_consumes then cost = 0 end
    local key = keys[place + i]
    local admitted, remaining, over, reset, retry, changed, expires =
      limit.decide(draft[key] or state_of(place + i, key, limit), cost, now, limit)
    if changed then
      changed.expires, changed.is_log = expires, limit.is_log
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
    states[key] = (state.is_log or state.expires > 0) and state
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

local function write_log(log, ttl)
  if log.last == log.first then
    if log.stored > 0 then redis.call('DEL', log.key) end
  elseif log.first > 0 or log.last < log.stored then
    redis.call('LTRIM', log.key, log.first, log.last - 1)
  end
  local hit, to_write = string.format('%.0f', log.newest), log.added
  while to_write > 0 do
    local hits = {}
    for i = 1, math.min(to_write, KEYS_PER_CALL) do
      hits[i] = hit
    end
    redis.call('RPUSH', log.key, unpack(hits))
    to_write = to_write - #hits
  end
  redis.call('PEXPIRE', log.key, ttl)
end

for key, state in pairs(dirty) do
  local ttl = string.format('%.0f', math.ceil(math.min(COUNT_MAX, state.expires) / 1000))
  if state.expires <= 0 then
    redis.call('DEL', key)
  elseif state.is_log then
    write_log(state, ttl)
  else
    local shape = state[3] and '%.0f %.0f %.0f' or '%.0f %.0f'
    redis.call('SET', key, string.format(shape, state[1], state[2], state[3]), 'PX', ttl)
  end
end
reply[replied + 1] = now
return reply
