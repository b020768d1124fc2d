-- Note when claims' leases end, forget those of claims that have ended, and tell whether another
-- candidate is due: what a worker asks between taking claims and running them, in one round trip.
--
-- KEYS[1..4]  zset    ready lanes P0, P1, P2, P3
-- KEYS[5]     zset    leases of the queue
-- ARGV[1]     int     clock offset, ms, added to Redis TIME
-- ARGV[2]     int     how many claims were taken, n
-- ARGV[3..]           n pairs of member (workflow_id|claim_token) and end of its lease, ms since the
--                     epoch (the later of two times wins); then the members of claims that ended
--
-- Returns   due   a lane has a member that is due: somebody else should be woken
--           idle  nothing is due
-- Cost      O(log n) each for n members of the longest set.
-- On repeat the leases stay as they are; the answer is asked anew.

local offset, count = tonumber(ARGV[1]), tonumber(ARGV[2])
if not offset or not count then
  return redis.error_reply('ERR note_claims: ARGV[1] and ARGV[2] must be numbers')
end
for pair = 1, count do
  if not tonumber(ARGV[2 + 2 * pair]) then
    return redis.error_reply('ERR note_claims: the end of a lease must be a time in ms')
  end
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + offset)

for pair = 1, count do
  redis.call('ZADD', KEYS[5], 'GT', ARGV[2 + 2 * pair], ARGV[1 + 2 * pair])
end
for ended = 3 + 2 * count, #ARGV do
  redis.call('ZREM', KEYS[5], ARGV[ended])
end
for lane = 1, 4 do
  if redis.call('ZCOUNT', KEYS[lane], '-inf', now) > 0 then
    return 'due'
  end
end
return 'idle'
