-- Tell the earliest time among the due members of all ready lanes; nothing is written.
--
-- KEYS[1..4]  zset  ready lanes P0, P1, P2, P3
-- ARGV[1]     int   clock offset, ms, added to Redis TIME
--
-- Returns   score  of the oldest due member, ms since the epoch
--           nil    nothing is due
-- Cost      O(log n) for n members of the longest lane.
-- On repeat the same answer, as long as nobody pushes or pops.

local offset = tonumber(ARGV[1])
if not offset then
  return redis.error_reply('ERR oldest_due: ARGV[1] must be a clock offset in ms')
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + offset)

local oldest = false
for lane = 1, 4 do
  local found = redis.call('ZRANGEBYSCORE', KEYS[lane], '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
  if found[1] and (not oldest or tonumber(found[2]) < tonumber(oldest)) then
    oldest = found[2]
  end
end
return oldest
