-- Same decisions as limits/sliding-window-log.ts. State: the hits at the indices from `first` to
-- `last - 1` of the list, then `added` hits at the time `newest`. The list is in order, so expired
-- hits are found by binary search; `decide` writes nothing.
local function read(_, key)
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

local HITS_PER_CALL = 1000
local function write(log, ttl)
  if log.last == log.first then
    if log.stored > 0 then redis.call('DEL', log.key) end
  elseif log.first > 0 or log.last < log.stored then
    redis.call('LTRIM', log.key, log.first, log.last - 1)
  end
  local hit, to_write = string.format('%.0f', log.newest), log.added
  while to_write > 0 do
    local times = {}
    for i = 1, math.min(to_write, HITS_PER_CALL) do
      times[i] = hit
    end
    redis.call('RPUSH', log.key, unpack(times))
    to_write = to_write - #times
  end
  redis.call('PEXPIRE', log.key, ttl)
end

local function decide(state, hits, now, limit)
  local requests, window, key = limit.requests, limit.window, state.key
  local first, last, added, newest = state.first, state.last, state.added, state.newest
  local function hit_at(place)
    if place >= last then return newest end
    return tonumber(redis.call('LINDEX', key, place)) or 0
  end
  local function first_beyond(edge)
    local low, high = first - 1, last
    while high - low > 1 do
      local middle = math.floor((low + high) / 2)
      if hit_at(middle) <= edge then low = middle else high = middle end
    end
    return high
  end
  local stored_hits = last - first + added
  local clamped = stored_hits > 0 and newest > now + window
  if clamped then
    local first_ahead = first_beyond(now + window)
    newest = first_ahead > first and math.max(now, hit_at(first_ahead - 1)) or now
    added, last = added + last - first_ahead, first_ahead
  end
  local at = stored_hits > 0 and math.max(now, newest) or now
  local edge = at - window
  if stored_hits > 0 and newest <= edge then
    first, added = last, 0
  elseif first < last and hit_at(first) <= edge then
    first = first_beyond(edge)
  end
  local live = last - first + added
  local admitted
  if hits <= 0 then admitted = hits < 0 or live < requests else admitted = live + hits <= requests end
  local retry = 0
  if not admitted then
    local requested = math.max(1, hits)
    retry = requested > requests and NEVER or hit_at(first + live + requested - requests - 1) + window - now
  elseif hits > 0 then
    added, newest = added + hits, at
  elseif hits < 0 then
    local removed = math.min(live, -hits)
    local removed_added = math.min(added, removed)
    added, last = added - removed_added, last - (removed - removed_added)
    if added == 0 and last > first then newest = hit_at(last - 1) end
  end
  local after = last - first + added
  local reset = after > 0 and newest + window - now or 0
  local changed = nil
  if after ~= stored_hits or hits > 0 or clamped then
    changed = {
      key = key, stored = state.stored, first = first, last = last, added = added, newest = newest,
    }
  end
  return admitted, math.max(0, requests - after), admitted and 0 or hits, reset, retry, changed, reset
end
return { decide = decide, read = read, write = write }
