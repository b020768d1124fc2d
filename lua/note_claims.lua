-- Note when claims' leases end, forget those of claims that have ended, take the claimed out of the
-- lanes, however they were found, and ring the bell where another candidate is due: what a worker
-- does between taking claims and running them, in one trip.
--
-- KEYS[1..4]  zset    ready lanes P0, P1, P2, P3
-- KEYS[5]     zset    leases of the queue
-- KEYS[6]     string  bell of the queue, there while a wakeup is on its way
-- ARGV[1]     int     clock offset, ms, added to Redis TIME
-- ARGV[2]     int     how long the bell rings, ms
-- ARGV[3]     int     how many claims were taken, n
-- ARGV[4..]           n pairs of member (workflow_id|claim_token) and end of its lease, ms since the
--                     epoch (the later of two times wins); then the members of claims that ended
--
-- Returns   ring  a lane has a member that is due, and the bell was silent: the caller sends a wakeup
--           due   a lane has one, and a wakeup is on its way
--           idle  nothing is due
-- Cost      O(log n) each for n members of the longest set.
-- On repeat the leases stay as they are, and the lanes; the bell rings already.

local offset, bell_ms, count = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if not offset or not bell_ms or not count then
  return redis.error_reply('ERR note_claims: ARGV[1] to ARGV[3] must be numbers')
end
for pair = 1, count do
  if not tonumber(ARGV[3 + 2 * pair]) then
    return redis.error_reply('ERR note_claims: the end of a lease must be a time in ms')
  end
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + offset)

for pair = 1, count do
  local member = ARGV[2 + 2 * pair]
  redis.call('ZADD', KEYS[5], 'GT', ARGV[3 + 2 * pair], member)
  local workflow = string.match(member, '^[^|]*')
  for lane = 1, 4 do
    redis.call('ZREM', KEYS[lane], workflow)
  end
end
for ended = 4 + 2 * count, #ARGV do
  redis.call('ZREM', KEYS[5], ARGV[ended])
end
for lane = 1, 4 do
  if redis.call('ZCOUNT', KEYS[lane], '-inf', now) > 0 then
    return redis.call('SET', KEYS[6], '1', 'NX', 'PX', bell_ms) and 'ring' or 'due'
  end
end
return 'idle'
