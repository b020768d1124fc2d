-- Take a workflow out of every ready lane.
--
-- KEYS[1..4]  zset    ready lanes P0, P1, P2, P3
-- ARGV[1]     string  workflow_id
--
-- Returns   removed  it stood in a lane
--           absent   it stood in none
-- Cost      O(log n) for n members of the longest lane.
-- On repeat absent.

local removed = 0
for lane = 1, 4 do
  removed = removed + redis.call('ZREM', KEYS[lane], ARGV[1])
end
if removed > 0 then
  return 'removed'
end
return 'absent'
