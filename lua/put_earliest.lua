-- Put a member into a sorted set of times, the earlier of two times winning.
-- For timers: a slow hand that puts back an old "not yet" never hides an earlier one.
--
-- KEYS[1]  zset    timers of a queue
-- ARGV[1]  string  member
-- ARGV[2]  int     score, ms since the epoch
--
-- Returns   added    it was not there
--           earlier  it was there with a later score
--           kept     it was there with this score or an earlier one
-- Cost      O(log n) for n members.
-- On repeat kept.

local standing = redis.call('ZSCORE', KEYS[1], ARGV[1])
local changed = redis.call('ZADD', KEYS[1], 'LT', 'CH', ARGV[2], ARGV[1])
if not standing then
  return 'added'
end
if changed == 1 then
  return 'earlier'
end
return 'kept'
