-- Show the due members of a sorted set of times, earliest first; nothing is taken.
-- A reader that dies after looking hides nothing: the member leaves the set only when its case
-- was dealt with, by remove_if_score with the score shown here.
--
-- KEYS[1]  zset  timers or leases of a queue
-- ARGV[1]  int   clock offset, ms, added to Redis TIME
-- ARGV[2]  int   at most so many members, 1 or more
--
-- Returns   {member, score, member, score, ...}   empty when nothing is due
-- Cost      O(log n + m) for n members, m of them shown.
-- On repeat the same members, until they are removed or put later.

local offset = tonumber(ARGV[1])
local limit = tonumber(ARGV[2])
if not offset then
  return redis.error_reply('ERR peek_due: ARGV[1] must be a clock offset in ms')
end
-- A negative count would mean "all of them".
if not limit or limit < 1 then
  return redis.error_reply('ERR peek_due: ARGV[2] must be 1 or more')
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + offset)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
