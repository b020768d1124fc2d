-- Put a workflow into a ready lane, or raise it: a member stands in exactly one lane, in the
-- highest priority and with the earliest time ever asked for since it was last taken.
-- Both can only be raised, so pushes commute: any order of the same pushes ends alike.
--
-- KEYS[1..4]  zset    ready lanes P0, P1, P2, P3
-- ARGV[1]     string  workflow_id
-- ARGV[2]     int     wanted lane, 0..3
-- ARGV[3]     int     when it may run, ms since the epoch
--
-- Returns   added    it stood in no lane
--           moved    it stood in a lower-priority lane
--           earlier  it stays in its lane, with an earlier time
--           kept     nothing changed
-- Cost      O(log n) for n members of the longest lane.
-- On repeat kept.

local member = ARGV[1]
local wanted = tonumber(ARGV[2])
local earliest = tonumber(ARGV[3])

if not wanted or not KEYS[wanted + 1] then
  return redis.error_reply('ERR push: ARGV[2] must be a lane, 0..3')
end
if not earliest or earliest ~= earliest then
  return redis.error_reply('ERR push: ARGV[3] must be a time in ms')
end

-- More than one lane can hold it only after a run that was cut short; this run then mends it.
local standing = nil
local standing_score = nil
local strays = {}
for lane = 3, 0, -1 do
  local score = redis.call('ZSCORE', KEYS[lane + 1], member)
  if score then
    if standing then
      strays[#strays + 1] = standing
    end
    standing = lane
    standing_score = tonumber(score)
    earliest = math.min(earliest, standing_score)
  end
end

local target = wanted
if standing and standing <= wanted then
  target = standing
elseif standing then
  strays[#strays + 1] = standing
end

local word = 'kept'
if not standing then
  word = 'added'
elseif target < standing then
  word = 'moved'
elseif earliest < standing_score then
  word = 'earlier'
end

-- The addition comes first: a refusal at maxmemory then leaves the member where it stood.
if word ~= 'kept' then
  redis.call('ZADD', KEYS[target + 1], string.format('%.0f', earliest), member)
end
for _, lane in ipairs(strays) do
  redis.call('ZREM', KEYS[lane + 1], member)
end
return word
