"""Every bound of the kernel in one place, the unit in each name (design 1.3).

Relations between bounds are asserted here, so that a changed figure cannot contradict another.
"""

from __future__ import annotations

from datetime import UTC, datetime

#: Bounds of what is stored, in bytes of compact UTF-8 JSON.
INPUT_BYTES = 64 * 1024
CHECKPOINT_BYTES = 64 * 1024
OUTPUT_BYTES = 256 * 1024
DOCUMENT_BYTES = 4 * 1024 * 1024
NESTING_LEVELS = 100

#: Error texts are cut to these, never refused: a failure must always be storable.
ERROR_MESSAGE_BYTES = 4 * 1024
ERROR_CODE_CHARACTERS = 64

#: Names and keys.
NAME_CHARACTERS = 100
BIZ_KEY_BYTES = 512
PLAN_STEPS = 200
#: Instances one page for people may hold.
PAGE_INSTANCES = 1_000

#: Signals delivered, instances registered or woken by one bulk command.
PAGE_WRITES = 500

#: Attempts kept per step for people; the totals count all of them.
ATTEMPTS_KEPT = 10
#: Signal ids kept per step, so that one signal never wakes it twice.
WOKEN_BY_KEPT = 100

#: Signals: length of their names, how many one look reads, and how long their ids are remembered.
SIGNAL_NAME_CHARACTERS = 200
SIGNALS_READ = 200
SIGNAL_MEMORY_SECONDS = 30 * 24 * 3600

#: Capacity: names of resources, how many one step or workflow may name, and the largest limits.
RESOURCE_NAME_CHARACTERS = 200
RESOURCES_PER_OWNER = 16
CONCURRENCY_MAX = 1_000_000
STARTS_PER_SECOND_MAX = 10_000
STARTS_PER_SECOND_MIN = 0.0001
#: How long a handed-on permit is kept for whom it was handed to, and how many at a time.
RESERVATION_SECONDS = 5
HAND_OUT_MAX = 100
#: One that needs several resources keeps a place of one, while it waits for the next, for as long
#: as it has waited so far, between these bounds.
GATHERING_SECONDS = 30
GATHERING_SECONDS_MAX = 3600
#: A permit passed on waits so long for its claim; nothing takes it away sooner, and no claim of it
#: is taken later.
PASSING_SECONDS = 2
#: When a waiter looks by itself although nobody handed anything on, and after a lost answer.
PERMIT_RETRY_SECONDS = 30
PERMIT_RETRY_SECONDS_MAX = 3600
PERMIT_UNCERTAIN_SECONDS = 1
#: Changes of a limit kept for people, holders and waiters shown, resources listed.
LIMIT_CHANGES_KEPT = 50
CAPACITY_SHOWN = 100
RESOURCES_LISTED = 10_000

#: Waits and delays, in seconds.
DELAY_SECONDS_MAX = 366 * 24 * 3600
TIMEOUT_SECONDS_MAX = 7 * 24 * 3600
FINALIZER_TIMEOUT_SECONDS = 60
FINALIZER_BACKOFF_CAP_SECONDS = 600
FINALIZER_POISONED_SECONDS = 3600
INCOMPATIBLE_DEFER_SECONDS = 3600
#: The same while a worker with the stored definition was seen within `WORKER_SEEN_SECONDS`.
INCOMPATIBLE_SERVED_SECONDS = 30
WORKER_SEEN_SECONDS = 60
ENGINE_WORK_SECONDS = 60

#: "Never by itself": what claimable_time says when only a signal can wake an instance.
FAR_FUTURE = datetime(9999, 1, 1, tzinfo=UTC)

#: Commits of one process that travel as one command at most, and claims it can run at once.
GROUP_COMMITS = 32
SLOTS_PER_CHILD = 32

#: One drain gives its slot back after this many candidates that could not be claimed in a row.
STALE_CANDIDATES_MAX = 8

assert CHECKPOINT_BYTES <= OUTPUT_BYTES <= DOCUMENT_BYTES
assert INPUT_BYTES <= DOCUMENT_BYTES
assert FINALIZER_BACKOFF_CAP_SECONDS < FINALIZER_POISONED_SECONDS
