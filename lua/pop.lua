-- Take the next due workflows, by weighted round robin 8:6:4:2 over the lanes that have one.
-- Taking several is the same as that many runs of one each, up to the first that finds nothing.
--
-- A pointer walks over twenty slots; on full lanes any twenty pops in a row are exactly 8/6/4/2.
-- A slot whose lane has nothing due is passed at once, so no lane waits for an empty one, and
-- every lane comes up within twenty pops. Members of the future stay.
-- A pop that finds nothing due anywhere arms a burst: the next up to eight pops look at P0 first,
-- without moving the pointer; the burst ends early when P0 has nothing due.
--
-- KEYS[1..4]  zset  ready lanes P0, P1, P2, P3
-- KEYS[5]     hash  rotation: slot (0..19, the next one), burst (pops left that look at P0 first)
-- ARGV[1]     int   clock offset, ms, added to Redis TIME
-- ARGV[2]     int   how many at most, from 1
--
-- Returns   {workflow_id, lane, score, ...}   taken, they now stand in no lane; empty: nothing is due
-- Cost      O(log n) each for n members of the longest lane.
-- On repeat takes the next one; what a lost answer took is found again by reconciliation.

local ORDER = {0, 1, 2, 0, 1, 3, 0, 2, 1, 0, 0, 1, 2, 0, 1, 3, 0, 2, 1, 0}
local BURST = 8

local offset, count = tonumber(ARGV[1]), tonumber(ARGV[2])
if not offset then
  return redis.error_reply('ERR pop: ARGV[1] must be a clock offset in ms')
end
if not count or count < 1 then
  return redis.error_reply('ERR pop: ARGV[2] must be how many to take, from 1')
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + offset)

local looked = {}
local function first_due(lane)
  if not looked[lane] then
    looked[lane] = redis.call(
      'ZRANGEBYSCORE', KEYS[lane + 1], '-inf', now, 'WITHSCORES', 'LIMIT', 0, 1)
  end
  return looked[lane][1] and looked[lane]
end

local rotation = redis.call('HMGET', KEYS[5], 'slot', 'burst')
local slot_before = math.floor(tonumber(rotation[1]) or 0) % #ORDER
local burst_before = math.min(tonumber(rotation[2]) or 0, BURST)
local slot, burst = slot_before, burst_before

local function next_lane()
  if burst > 0 and first_due(0) then
    burst = burst - 1
    return 0
  end
  burst = 0
  for step = 0, #ORDER - 1 do
    local candidate = ORDER[(slot + step) % #ORDER + 1]
    if first_due(candidate) then
      slot = (slot + step + 1) % #ORDER
      return candidate
    end
  end
  burst = BURST
  return nil
end

local taken = {}
for _ = 1, count do
  local lane = next_lane()
  if not lane then
    break
  end
  local found = first_due(lane)
  redis.call('ZREM', KEYS[lane + 1], found[1])
  looked[lane] = nil
  taken[#taken + 1] = found[1]
  taken[#taken + 1] = lane
  taken[#taken + 1] = found[2]
end
-- At maxmemory this write may be refused: the turn is then lost, the answer is not.
if slot ~= slot_before or burst ~= burst_before then
  redis.pcall('HSET', KEYS[5], 'slot', slot, 'burst', burst)
end
return taken
