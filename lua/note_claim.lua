-- Note when a claim's lease ends, and tell whether another candidate is due: what a worker asks
-- between taking a claim and running it, in one round trip.
--
-- KEYS[1..4]  zset    ready lanes P0, P1, P2, P3
-- KEYS[5]     zset    leases of the queue
-- ARGV[1]     string  member: workflow_id|claim_token
-- ARGV[2]     int     end of the lease, ms since the epoch; the later of two times wins
-- ARGV[3]     int     clock offset, ms, added to Redis TIME
--
-- Returns   due   a lane has a member that is due: somebody else should be woken
--           idle  nothing is due
-- Cost      O(log n) for n members of the longest set.
-- On repeat the lease stays as it is; the answer is asked anew.

local expires, offset = tonumber(ARGV[2]), tonumber(ARGV[3])
if not expires or not offset then
  return redis.error_reply('ERR note_claim: ARGV[2] and ARGV[3] must be times in ms')
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + offset)

redis.call('ZADD', KEYS[5], 'GT', ARGV[2], ARGV[1])
for lane = 1, 4 do
  if redis.call('ZCOUNT', KEYS[lane], '-inf', now) > 0 then
    return 'due'
  end
end
return 'idle'
