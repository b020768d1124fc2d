"""Keep the hints in Redis, behind short timeouts and a breaker.

Guarantees: a dead or hung Redis costs one call at most connect + read timeout, the calls after it
nothing while the breaker is open; every trouble is `HintsUnavailable` with its cause attached.
Leaves to others: the operations themselves (lua/), what a candidate is worth (the engine).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ClusterError, ReadOnlyError, RedisError, ResponseError
from redis.retry import Retry

from kernel.errors import HintsUnavailable, UsageError
from kernel.hints.breaker import Breaker
from kernel.hints.keys import LANES, Keys
from kernel.hints.port import Candidate, LaneDepth, Lease
from kernel.hints.scripts import Call, Scripts

CONNECT_TIMEOUT_SECONDS = 0.25
READ_TIMEOUT_SECONDS = 0.5
#: A bell ends by itself, so that a ringer that dies before sending silences nobody for long.
BELL_MS = 2_000
TICKBELL_MS = 5_000

#: Scores that a double keeps exactly end here; a foreign one may be infinite.
_FAR_MS = 2.0**53

#: Everything a server, a network or an unexpected reply can raise while a call is under way.
_TROUBLE = (RedisError, OSError, ValueError, TypeError, IndexError)


class RedisHints:
    """The hints of one deployment, in one Redis; see `kernel.hints.port.Hints`.

    `url` is redis://, rediss:// or unix://; timeouts in its query string win over ours.
    `clock_offset_ms` is asked at every call that judges what is due.
    Connects lazily, once per concurrent caller, and again in a forked child.

    Raises: UsageError, when the URL or the key prefix cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        key_prefix: str,
        clock_offset_ms: Callable[[], int] = lambda: 0,
        breaker: Breaker | None = None,
    ) -> None:
        self._keys = Keys(key_prefix)
        self._client = _connect_lazily(url)
        self._scripts = Scripts(self._client)
        self._offset = clock_offset_ms
        self._breaker = breaker or Breaker()

    def push(self, queue: str, workflow_id: str, *, priority: int, at_ms: int) -> bool:
        """Put a workflow into its lane, or raise it; True: it stood in none."""
        assert 0 <= priority < LANES, f"no lane for priority {priority}"
        keys = self._keys.of(queue)
        with self._asking():
            args = (workflow_id, int(priority), int(at_ms))
            return str(self._scripts.run("push", keys=keys.lanes, args=args)) == "added"

    def push_all(self, queue: str, candidates: Sequence[Candidate]) -> int:
        """Push many candidates in one round trip; return how many stood in no lane."""
        lanes = self._keys.of(queue).lanes
        calls: list[Call] = [
            (lanes, (one.workflow_id, int(one.priority), int(one.at_ms))) for one in candidates
        ]
        with self._asking():
            return sum(str(word) == "added" for word in self._scripts.run_all("push", calls))

    def pop(self, queue: str) -> str | None:
        """Take the next due workflow_id by weighted round robin."""
        taken = self.pop_many(queue, 1)
        return taken[0].workflow_id if taken else None

    def pop_many(self, queue: str, count: int) -> list[Candidate]:
        """Take up to `count` due candidates in one round trip."""
        assert count >= 1, f"asked for {count} candidates"
        keys = self._keys.of(queue)
        with self._asking():
            args = (self._offset(), count)
            flat = self._scripts.run("pop", keys=(*keys.lanes, keys.rotation), args=args)
            taken = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
            return [Candidate(str(wid), int(lane), _ms(score)) for wid, lane, score in taken]

    def has_due(self, queue: str) -> bool:
        """Tell whether any lane of the queue has a due member."""
        return self.oldest_due_ms(queue) is not None

    def oldest_due_ms(self, queue: str) -> int | None:
        """Tell when the longest-waiting due member of all lanes became due."""
        keys = self._keys.of(queue)
        with self._asking():
            score = self._scripts.run("oldest_due", keys=keys.lanes, args=(self._offset(),))
            return None if score is None else _ms(score)

    def is_next(self, queue: str, *, priority: int, at_ms: int) -> bool:
        """Tell whether nothing in the lanes would be taken before such a candidate."""
        keys = self._keys.of(queue)
        with self._asking():
            args = (self._offset(), int(priority), int(at_ms))
            return int(self._scripts.run("is_next", keys=keys.lanes, args=args)) == 1

    def depth(self, queue: str) -> dict[int, LaneDepth]:
        """Count each lane, keyed by priority 0 to 3."""
        keys = self._keys.of(queue)
        with self._asking():
            flat = self._scripts.run("depth", keys=keys.lanes, args=(self._offset(),))
            return {
                lane: LaneDepth(
                    total=int(flat[3 * lane]),
                    ready=int(flat[3 * lane + 1]),
                    delayed=int(flat[3 * lane]) - int(flat[3 * lane + 1]),
                    oldest_ms=_ms(flat[3 * lane + 2]) if flat[3 * lane + 2] else None,
                )
                for lane in range(LANES)
            }

    def put_timer(self, queue: str, workflow_id: str, *, at_ms: int) -> None:
        """Note when a waiting workflow is to be looked at; the earlier of two times wins."""
        key = self._keys.of(queue).timers
        self._run("put_earliest", keys=(key,), args=(workflow_id, int(at_ms)))

    def due_timers(self, queue: str, *, limit: int) -> list[tuple[str, int]]:
        """Show up to `limit` due timers as (workflow_id, score_ms), earliest first."""
        return self._peek(self._keys.of(queue).timers, limit=limit)

    def drop_timer(self, queue: str, workflow_id: str, *, score_ms: int) -> None:
        """Remove a timer if it still has the score that was read."""
        key = self._keys.of(queue).timers
        self._run("remove_if_score", keys=(key,), args=(workflow_id, int(score_ms)))

    def drop_timers(self, queue: str, timers: Sequence[tuple[str, int]]) -> None:
        """Remove timers that still have the score that was read, in one round trip."""
        key = self._keys.of(queue).timers
        calls: list[Call] = [((key,), (workflow_id, int(score))) for workflow_id, score in timers]
        with self._asking():
            self._scripts.run_all("remove_if_score", calls)

    def put_lease(self, queue: str, workflow_id: str, token: str, *, expires_ms: int) -> None:
        """Note when a claim's lease ends; the later of two times wins."""
        key = self._keys.of(queue).leases
        self._run("put_latest", keys=(key,), args=(f"{workflow_id}|{token}", int(expires_ms)))

    def note_claims(
        self, queue: str, claims: Sequence[Lease], *, ended: Sequence[tuple[str, str]] = ()
    ) -> bool:
        """Note claims, out of their lanes, forget ended ones, ring if another candidate is due."""
        keys = self._keys.of(queue)
        args: list[str | int] = [self._offset(), BELL_MS, len(claims)]
        for workflow_id, token, expires_ms in claims:
            args += (f"{workflow_id}|{token}", int(expires_ms))
        args += (f"{workflow_id}|{token}" for workflow_id, token in ended)
        with self._asking():
            known = (*keys.lanes, keys.leases, keys.bell)
            return str(self._scripts.run("note_claims", keys=known, args=args)) == "ring"

    def due_leases(self, queue: str, *, limit: int) -> list[tuple[str, str, int]]:
        """Show up to `limit` ended leases as (workflow_id, token, score_ms)."""
        due = self._peek(self._keys.of(queue).leases, limit=limit)
        split = [(*member.partition("|"), score) for member, score in due]
        return [(workflow_id, token, score) for workflow_id, _, token, score in split]

    def drop_lease(self, queue: str, workflow_id: str, token: str, *, score_ms: int) -> None:
        """Remove a lease if it still has the score that was read."""
        key, member = self._keys.of(queue).leases, f"{workflow_id}|{token}"
        self._run("remove_if_score", keys=(key,), args=(member, int(score_ms)))

    def drop_leases(self, queue: str, claims: Sequence[tuple[str, str]]) -> None:
        """Remove the leases of claims given back."""
        if not claims:
            return
        key = self._keys.of(queue).leases
        with self._asking():
            self._client.zrem(key, *(f"{workflow_id}|{token}" for workflow_id, token in claims))

    def ring(self, queue: str) -> bool:
        """Set the queue's bell; True: it was silent, so this caller sends the wakeup."""
        return self._set_bell(self._keys.of(queue).bell, for_ms=BELL_MS)

    def clear_bell(self, queue: str) -> None:
        """Silence the bell, so that the next ring sends a wakeup."""
        key = self._keys.of(queue).bell
        with self._asking():
            self._client.delete(key)

    def ring_from_tick(self, queue: str) -> bool:
        """Set the tick's own bell; True: this caller sends the wakeup."""
        return self._set_bell(self._keys.of(queue).tickbell, for_ms=TICKBELL_MS)

    def marker_present(self) -> bool:
        """Tell whether the lanes were built since Redis was last empty."""
        with self._asking():
            return bool(self._client.exists(self._keys.marker))

    def set_marker(self) -> None:
        """Note that the lanes have been rebuilt."""
        with self._asking():
            self._client.set(self._keys.marker, "1")

    def close(self) -> None:
        """Let go of connections; never raises."""
        with contextlib.suppress(*_TROUBLE):
            self._client.close()

    def _run(self, name: str, *, keys: tuple[str, ...], args: tuple[str | int, ...]) -> None:
        with self._asking():
            self._scripts.run(name, keys=keys, args=args)

    def _peek(self, key: str, *, limit: int) -> list[tuple[str, int]]:
        assert limit >= 1, f"a look at due members needs a limit of 1 or more, not {limit}"
        with self._asking():
            flat = self._scripts.run("peek_due", keys=(key,), args=(self._offset(), limit))
            return [(str(m), _ms(s)) for m, s in zip(flat[::2], flat[1::2], strict=True)]

    def _set_bell(self, key: str, *, for_ms: int) -> bool:
        with self._asking():
            return bool(self._client.set(key, "1", nx=True, px=for_ms))

    @contextlib.contextmanager
    def _asking(self) -> Iterator[None]:
        """Admit one exchange with Redis, and translate all its trouble in one place."""
        ticket = self._breaker.admit()
        try:
            yield
        except _TROUBLE as error:
            if _is_silence(error):
                self._breaker.silent(ticket)
                self._forget_connections()
            else:
                self._breaker.answered(ticket)
            raise HintsUnavailable(f"Redis: {type(error).__name__}: {error}") from error
        except BaseException:
            # Ended from outside (a shutdown, a caller's fault): that says nothing about Redis.
            self._breaker.abandoned(ticket)
            raise
        else:
            self._breaker.answered(ticket)

    def _forget_connections(self) -> None:
        """Look the server up anew: after a failover the old one may live on, read-only."""
        with contextlib.suppress(*_TROUBLE):
            self._client.connection_pool.disconnect(inuse_connections=False)


def _connect_lazily(url: str) -> redis.Redis:
    """Build a client that answers or fails within our timeouts, and never tries on its own."""
    settings: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_TIMEOUT_SECONDS,
        "socket_timeout": READ_TIMEOUT_SECONDS,
        # A repeat would double the time a dead server costs; the next caller is the repeat.
        "retry": Retry(NoBackoff(), 0),
        "decode_responses": True,
        # A foreign member must not break the reading of all others.
        "encoding_errors": "replace",
        "protocol": 2,
    }
    try:
        return redis.Redis.from_url(url, **settings)
    except ValueError as error:
        # Neither the URL nor the parser's words go into the message: both may hold the password.
        raise UsageError("the Redis URL cannot be used: write redis://host:6379/0") from error


def _is_silence(error: Exception) -> bool:
    """Tell a server that cannot serve now from one that answered "no" to this command.

    A refusal (wrong type, out of memory, a fault in a script) is quick and concerns one key, so
    it does not close the way for everything else.
    """
    # Redis 6 wraps what a command inside a script answered, so the type alone does not tell.
    if isinstance(error, ReadOnlyError | ClusterError) or "READONLY" in str(error):
        return True
    return isinstance(error, RedisError | OSError) and not isinstance(error, ResponseError)


def _ms(score: str) -> int:
    """Read a score as Redis prints it, whole milliseconds."""
    return int(min(max(float(score), -_FAR_MS), _FAR_MS))
