-- Put a member into a sorted set of times, the later of two times winning.
-- For leases: the member names one claim, whose lease only ever moves later; a renewal that
-- arrives late therefore cannot shorten it. An end before its time is told elsewhere (the lanes).
--
-- KEYS[1]  zset    leases of a queue
-- ARGV[1]  string  member
-- ARGV[2]  int     score, ms since the epoch
--
-- Returns   added  it was not there
--           later  it was there with an earlier score
--           kept   it was there with this score or a later one
-- Cost      O(log n) for n members.
-- On repeat kept.

local standing = redis.call('ZSCORE', KEYS[1], ARGV[1])
local changed = redis.call('ZADD', KEYS[1], 'GT', 'CH', ARGV[2], ARGV[1])
if not standing then
  return 'added'
end
if changed == 1 then
  return 'later'
end
return 'kept'
