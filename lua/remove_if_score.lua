-- Compare and remove: a member leaves a sorted set only while its score is the one that was read.
-- A slow hand thus never removes what somebody else has put there since.
--
-- KEYS[1]  zset    timers or leases of a queue
-- ARGV[1]  string  member
-- ARGV[2]  int     the score that was read, ms since the epoch
--
-- Returns   removed  it is gone
--           changed  it stays: it has another score by now
--           absent   it was not there
-- Cost      O(log n) for n members.
-- On repeat absent.

local expected = tonumber(ARGV[2])
if not expected then
  return redis.error_reply('ERR remove_if_score: ARGV[2] must be a score in ms')
end
local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score then
  return 'absent'
end
if tonumber(score) ~= expected then
  return 'changed'
end
redis.call('ZREM', KEYS[1], ARGV[1])
return 'removed'
