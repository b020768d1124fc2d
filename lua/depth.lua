-- Count the members of the ready lanes, due and delayed apart; nothing is written.
--
-- KEYS[1..4]  zset  ready lanes P0, P1, P2, P3
-- ARGV[1]     int   clock offset, ms, added to Redis TIME
--
-- Returns   {total, due, oldest} for P0, then P1, P2, P3, in one flat list;
--           oldest is the score of the oldest due member, or '' when nothing is due
-- Cost      O(log n) for n members of the longest lane.
-- On repeat the same answer, as long as nobody pushes or pops.

local offset = tonumber(ARGV[1])
if not offset then
  return redis.error_reply('ERR depth: ARGV[1] must be a clock offset in ms')
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + offset)

local answer = {}
for lane = 1, 4 do
  local first = redis.call('ZRANGEBYSCORE', KEYS[lane], '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
  answer[#answer + 1] = redis.call('ZCARD', KEYS[lane])
  answer[#answer + 1] = redis.call('ZCOUNT', KEYS[lane], '-inf', now)
  answer[#answer + 1] = first[2] or ''
end
return answer
