-- Tell whether a candidate would be the next one taken if it stood in its lane; nothing is written.
-- So whoever has a slot and may have this candidate without the lanes overtakes nobody: no other
-- lane has a due member whose turn it may be, and none in its own has waited longer.
--
-- KEYS[1..4]  zset  ready lanes P0, P1, P2, P3
-- ARGV[1]     int   clock offset, ms, added to Redis TIME
-- ARGV[2]     int   lane of the candidate, 0..3
-- ARGV[3]     int   since when it may run, ms since the epoch
--
-- Returns   1  nothing is due before it
--           0  something is
-- Cost      O(log n) for n members of the longest lane.
-- On repeat the same answer, as long as nobody pushes or pops.

local offset, wanted, at = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not offset then
  return redis.error_reply('ERR is_next: ARGV[1] must be a clock offset in ms')
end
if not wanted or not KEYS[wanted + 1] then
  return redis.error_reply('ERR is_next: ARGV[2] must be a lane, 0..3')
end
if not at then
  return redis.error_reply('ERR is_next: ARGV[3] must be a time in ms')
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) + offset

for lane = 0, 3 do
  local before = now
  if lane == wanted then
    before = math.min(now, at - 1)
  end
  local found = redis.call(
    'ZRANGEBYSCORE', KEYS[lane + 1], '-inf', string.format('%.0f', before), 'LIMIT', 0, 1)
  if found[1] then
    return 0
  end
end
return 1
