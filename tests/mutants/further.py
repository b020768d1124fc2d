"""The mutants of hints, capacity and the outbox."""

from tests.mutants.mutant import CAPACITY, INTERLEAVE, MOVES, Mutant

_TICKING = "kernel/reconcile/ticking.py"
_TRANSITIONS = "jobs/dispatch/transitions.py"
_PIPELINES = "kernel/store/capacity_pipelines.py"

FURTHER = (
    Mutant(
        name="drop timers without compare",
        breaks="a slow hand removes the timer somebody has just put",
        file="lua/remove_if_score.lua",
        old="if tonumber(score) ~= expected then\n",
        new="if false then\n",
        suites=("tests/lua/test_remove_if_score.py", "tests/hints"),
    ),
    Mutant(
        name="a renewed lease is forgotten",
        breaks="the death of a holder that renewed once is noticed by reconciliation only",
        file=_TICKING,
        old="                    self._hints.leased(instance)  # renewed since: look again when that is over\n",  # noqa: E501
        new="                    self._hints.unleased(queue, workflow_id, token)\n",
        suites=("tests/trust/test_bell.py", "tests/protocol/test_reconciling.py", "tests/keeper"),
    ),
    Mutant(
        name="wait that is left has no timer",
        breaks="a timer that was dropped too early is not put back",
        file=_TICKING,
        old="                    self._hints.place(again.instance, again.now)\n",
        new="                    pass\n",
        suites=("tests/waiting/test_timers.py", "tests/protocol/test_reconciling.py"),
    ),
    Mutant(
        name="release without owner",
        breaks="a late holder gives back the permit of another",
        file=_PIPELINES,
        old='after: dict[str, Expr] = {"holders": without("$holders", {"$in": ["$$r.owner", records]})}',  # noqa: E501
        new='after: dict[str, Expr] = {"holders": []}',
        suites=(CAPACITY,),
    ),
    Mutant(
        name="permits past the line",
        breaks="whoever comes new overtakes those that wait",
        file=_PIPELINES,
        old='            {"$or": [{"$not": [in_line]}, has_reservation]},\n',
        new="",
        suites=(CAPACITY,),
    ),
    Mutant(
        name="permits without limit",
        breaks="more run at once than a resource allows",
        file=_PIPELINES,
        old='            below(taken),\n            in_rate("$$v.starts"',
        new='            in_rate("$$v.starts"',
        suites=(CAPACITY,),
    ),
    Mutant(
        name="reservations ignored",
        breaks="a place that is kept for one in line goes to another as well",
        file=_PIPELINES,
        old='    taken = {"$add": [{"$size": "$$v.holders"}, {"$size": "$$rest"}]}\n',
        new='    taken = {"$size": "$$v.holders"}\n',
        suites=(CAPACITY, INTERLEAVE),
    ),
    Mutant(
        name="renewal without token",
        breaks="whoever renews keeps the permits of the dead as well",
        file=_PIPELINES,
        old='    mine = {"$in": ["$$h.owner.token", {"$literal": list(tokens)}]}\n',
        new='    mine = {"$gte": ["$$h.owner.token", ""]}\n',
        suites=(CAPACITY, INTERLEAVE),
    ),
    Mutant(
        name="permits of the lost are kept",
        breaks="a permit whose claim is no more is free only when it runs out",
        file="kernel/reconcile/ended_permits.py",
        old="        if ended:\n            freed += len(ended)\n",
        new="        if False:\n            freed += len(ended)\n",
        suites=(CAPACITY, INTERLEAVE),
    ),
    Mutant(
        name="confirm without round",
        breaks="an old round's confirmation hides that the new one was never registered (I1)",
        file=_TRANSITIONS,
        old=(
            "    pending = this_round(rows(intent.model), intent)"
            ".filter(dispatch_status=DispatchStatus.PENDING)\n"
        ),
        new=(
            "    pending = rows(intent.model).filter("
            "pk=intent.pk, dispatch_status=DispatchStatus.PENDING)\n"
        ),
        suites=(MOVES, "tests/dispatch/test_relay.py"),
    ),
    Mutant(
        name="take before it is due",
        breaks="recovery handles a row beside its own request path, or a refused one hot",
        file=_TRANSITIONS,
        old="    due = rows(model).filter(due_filter(), pk=pk)\n",
        new="    due = rows(model).filter(pk=pk)\n",
        suites=(MOVES, "tests/dispatch/test_recovery.py"),
    ),
    Mutant(
        name="interrupted claims run side by side",
        breaks="an innocent claim is counted along with the one that kills its process",
        file="kernel/engine/crew.py",
        old="            return self._suspects == 0 and not self._lacks_threads\n",
        new="            return self._suspects >= 0\n",
        suites=("tests/protocol/test_side_by_side.py", INTERLEAVE),
    ),
    Mutant(
        name="place from the refusal",
        breaks="who is refused slowly stands behind those that came after it",
        file="kernel/protocol/turns.py",
        old="    return Latest(tuple(_moments(instance, step)))\n",
        new="    return Now()\n",
        suites=(CAPACITY,),
    ),
    Mutant(
        name="line cleared past a refusal",
        breaks="somebody was refused meanwhile, and whoever comes new overtakes",
        file="kernel/store/capacity.py",
        old='{"_id": resource, "line": line, **READABLE}',
        new='{"_id": resource, **READABLE}',
        suites=(CAPACITY, INTERLEAVE),
    ),
    Mutant(
        name="passed claim taken too late",
        breaks="a claim begins with a permit that others may have by then",
        file="kernel/store/claiming.py",
        old="        found = {**compile_guard(commit.guard), **in_time}\n",
        new="        found = {**compile_guard(commit.guard), **(in_time and {})}\n",
        suites=(CAPACITY, INTERLEAVE),
    ),
    Mutant(
        name="two gather on one resource",
        breaks="more than one place of a resource stands idle for those that wait elsewhere",
        file=_PIPELINES,
        old='    is_kept = {"$and": [{"$eq": [others, []]}, {"$or": [mine, has_place]}]}\n',
        new='    is_kept = {"$or": [mine, has_place]}\n',
        suites=(CAPACITY, INTERLEAVE),
    ),
    Mutant(
        name="one unreadable ends the page",
        breaks="an instance of a newer version keeps all others from being woken",
        file="kernel/store/legible.py",
        old="instance_of(document)\n        except Unreadable as exc:\n",
        new="instance_of(document)\n        except ZeroDivisionError as exc:\n",
        suites=("tests/protocol/test_unreadable.py",),
    ),
    Mutant(
        name="one unreadable signal ends the page",
        breaks="a signal of a newer version keeps all others from waking anybody",
        file="kernel/store/legible.py",
        old="            yield signal_of(row)\n        except Unreadable as exc:\n",
        new="            yield signal_of(row)\n        except ZeroDivisionError as exc:\n",
        suites=("tests/protocol/test_unreadable_signals.py",),
    ),
    Mutant(
        name="a refused document is met for ever",
        breaks="without Redis documents the server refuses to change keep all others unclaimed",
        file="kernel/store/claiming.py",
        old="                self._refused[workflow_id] = time.monotonic() + _REFUSED_SECONDS\n",
        new="",
        suites=("tests/protocol/test_refused_claims.py",),
    ),
    Mutant(
        name="a place kept for who has one",
        breaks="a place stands idle for one that was handed on to meanwhile",
        file=_PIPELINES,
        old="            *([is_waiter] if for_waiters else []),\n",
        new="            *([is_waiter] if not for_waiters else []),\n",
        suites=(CAPACITY,),
    ),
)
