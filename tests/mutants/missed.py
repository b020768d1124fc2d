"""The mutants that no test had noticed when they were tried first: each got its test."""

from tests.mutants.mutant import Mutant

_LOST = "tests/dispatch/test_lost_claims.py"
_FAIRLY = "tests/capacity/test_passing_fairly.py"

MISSED = (
    Mutant(
        name="page confirmed without dispatch claims",
        breaks="rows another dispatcher holds are settled by who lost them",
        file="jobs/dispatch/transitions.py",
        old="            dispatch_claim_token__in=[taken.claim_token for taken in some],\n",
        new="",
        suites=(_LOST,),
    ),
    Mutant(
        name="taken beside its holder",
        breaks="a row made due by hand is handled by two dispatchers",
        file="jobs/dispatch/transitions.py",
        old="        Q(dispatch_status=DispatchStatus.PROCESSING) & free\n",
        new="        Q(dispatch_status=DispatchStatus.PROCESSING)\n",
        suites=(_LOST,),
    ),
    Mutant(
        name="withdrawn whatever it was",
        breaks="a row that is dispatched reads as withdrawn",
        file="jobs/dispatch/transitions.py",
        old=(".filter(dispatch_status=DispatchStatus.WITHDRAWING)\n    return _moved(row,"),
        new=("\n    return _moved(row,"),
        suites=(_LOST,),
    ),
    Mutant(
        name="older generation ended without the claim",
        breaks="who lost the row ends an instance and starts another",
        file="jobs/dispatch/handling.py",
        old="if intent.supersedes is not None and not transitions.renew(taken):",
        new="if False:",
        suites=(_LOST,),
    ),
    Mutant(
        name="rows of a broken page not renewed",
        breaks="who lost a row starts it after its page broke",
        file="jobs/dispatch/handling.py",
        old="handle(kernel, taken) if transitions.renew(taken) else Handled.LOST",
        new="handle(kernel, taken)",
        suites=(_LOST,),
    ),
    Mutant(
        name="confirmed although not accepted",
        breaks="a busy round counts as delivered and never runs (I1)",
        file="jobs/dispatch/relay.py",
        old="    if not result.accepted:\n",
        new="    if False:\n",
        suites=(_LOST,),
    ),
    Mutant(
        name="recovery works from one end",
        breaks="what was accepted last waits behind a wall of rows",
        file="jobs/dispatch/recovery.py",
        old="[: most // 2]",
        new="[:0]",
        suites=(_LOST,),
    ),
    Mutant(
        name="announced after the commit",
        breaks="a death between the two leaves an end nobody hears of",
        file="jobs/services/rounds.py",
        old=(
            "            quota.settle(job_id, fencing_token)\n"
            "        if write.outcome is FencedOutcome.WRITTEN:\n"
            "            notifications.announce(job_id)\n"
        ),
        new=(
            "            quota.settle(job_id, fencing_token)\n"
            "    if write.outcome is FencedOutcome.WRITTEN:\n"
            "        notifications.announce(job_id)\n"
        ),
        suites=("tests/outbox/test_announcing.py",),
    ),
    Mutant(
        name="notification sent by another round",
        breaks="a late delivery of an old round is sent again",
        file="jobs/activities/notify.py",
        old="        or row.dispatch_fencing_token != fencing_token\n",
        new="",
        suites=("tests/outbox/test_announcing.py",),
    ),
    Mutant(
        name="delivered notification fails",
        breaks="a late finalizer overwrites a delivery (I6)",
        file="jobs/services/notifications.py",
        old="from_status=NotificationStatus.WAITING,",
        new="from_status=list(NotificationStatus),",
        suites=("tests/outbox/test_announcing.py",),
    ),
    Mutant(
        name="lost before the majority knows",
        breaks="an applied commit counts as a lost claim",
        file="kernel/engine/committing.py",
        old="    if verdict is Verdict.SEND_AGAIN:\n",
        new="    if False:\n",
        suites=("tests/unit/test_committing.py",),
    ),
    Mutant(
        name="group's blank counts as a loss",
        breaks="a claim still held is given up, its result thrown away",
        file="kernel/store/group_commits.py",
        old=(
            '            return StoreUnavailable("a commit of a group found '
            'nothing, though it should have")'
        ),
        new="            return False",
        suites=("tests/protocol/test_groups.py",),
    ),
    Mutant(
        name="group believed without the majority",
        breaks="what a failover may undo counts as written",
        file="kernel/store/group_commits.py",
        old='if exc.details.get("writeConcernErrors"):',
        new="if False:",
        suites=("tests/protocol/test_groups.py",),
    ),
    Mutant(
        name="popped and forgotten",
        breaks="an outage leaves candidates in no lane",
        file="kernel/engine/taking.py",
        old=("            self._put_back(queue, candidates)\n            raise\n"),
        new="            raise\n",
        suites=("tests/protocol/test_groups_in_trouble.py",),
    ),
    Mutant(
        name="popped stale and forgotten",
        breaks="an outage at the look leaves candidates in no lane",
        file="kernel/engine/taking.py",
        old="            self._put_back(queue, stale)\n",
        new="            pass\n",
        suites=("tests/protocol/test_groups_in_trouble.py",),
    ),
    Mutant(
        name="granted and dropped",
        breaks="claims nobody runs block their workflows until their leases end",
        file="kernel/engine/taking.py",
        old=(
            "            self._put_back(queue, stale)\n"
            "            if not held:\n"
            "                raise\n"
        ),
        new=("            self._put_back(queue, stale)\n            raise\n"),
        suites=("tests/protocol/test_groups_in_trouble.py",),
    ),
    Mutant(
        name="put off without revision",
        breaks="what came between reading and writing is overwritten",
        file="kernel/protocol/owning.py",
        old=(
            "        claim_token=instance.claim_token or UNCLAIMED,\n"
            "        revision=instance.revision,\n"
        ),
        new="        claim_token=instance.claim_token or UNCLAIMED,\n",
        suites=("tests/protocol/test_guards.py",),
    ),
    Mutant(
        name="left unread without token",
        breaks="the claim of a living successor is given back (I4)",
        file="kernel/protocol/owning.py",
        old="guard = Guard(workflow_id=workflow_id, statuses=CLAIMABLE, claim_token=token)",
        new="guard = Guard(workflow_id=workflow_id, statuses=CLAIMABLE, claim_token=None)",
        suites=("tests/protocol/test_guards.py",),
    ),
    Mutant(
        name="claimed and still in line",
        breaks="whoever runs keeps others from their turn",
        file="kernel/protocol/owning.py",
        old=('        "claimable_time": Now(lease_ms),\n        "blocked_on": Unset(),\n'),
        new='        "claimable_time": Now(lease_ms),\n',
        suites=("tests/capacity/test_waiting.py",),
    ),
    Mutant(
        name="workflow put off forgets a death",
        breaks="what kills its process waits for permits for ever unnoticed",
        file="kernel/protocol/queueing.py",
        old='        changes[f"{path}.recoveries"] = Add(1)\n',
        new="",
        suites=("tests/capacity/test_waiting.py",),
    ),
    Mutant(
        name="finalizer's error keeps its deaths",
        breaks="deaths are no longer counted in a row: it comes hourly",
        file="kernel/protocol/finalizing.py",
        old=(
            '        "finalizer.error": error_record(code, message, None),\n'
            '        "finalizer.recoveries": Lit(0),\n'
        ),
        new='        "finalizer.error": error_record(code, message, None),\n',
        suites=("tests/protocol/test_finalizers.py",),
    ),
    Mutant(
        name="finalizer not entered counts",
        breaks="a deploy uses up attempts",
        file="kernel/protocol/owning.py",
        old='        changes["finalizer.attempt"] = Add(-1)\n',
        new="",
        suites=("tests/protocol/test_finalizers.py",),
    ),
    Mutant(
        name="place lost on hand back",
        breaks="a deploy sends who was next in line to its end",
        file="kernel/protocol/owning.py",
        old='        changes[f"steps.{name}.place"] = Lit(place)\n',
        new="        pass\n",
        suites=(_FAIRLY,),
    ),
    Mutant(
        name="inbox of everybody",
        breaks="a signal for another workflow wakes a step",
        file="kernel/store/signals.py",
        old='{"workflow_id": workflow_id, "status": PENDING, "$or": wanted}',
        new='{"status": PENDING, "$or": wanted}',
        suites=("tests/waiting/test_own_signals.py",),
    ),
    Mutant(
        name="spent signals read",
        breaks="a signal that woke a step wakes the next that waits alike",
        file="kernel/store/signals.py",
        old='{"workflow_id": workflow_id, "status": PENDING, "$or": wanted}',
        new='{"workflow_id": workflow_id, "$or": wanted}',
        suites=("tests/waiting/test_own_signals.py",),
    ),
    Mutant(
        name="keeper frees whoever holds",
        breaks="the claim of a living successor is freed (I4)",
        file="kernel/keeper/freeing.py",
        old="stored.instance.claim_token != token:",
        new="stored.instance.claim_token is None:",
        suites=("tests/keeper/test_keeper.py",),
    ),
    Mutant(
        name="keeper renews the dead",
        breaks="a claim that cannot be freed never ends",
        file="kernel/keeper/keeper.py",
        old="alive = [child for child in children if not child.process.is_dead()]",
        new="alive = list(children)",
        suites=("tests/keeper/test_keeper.py",),
    ),
    Mutant(
        name="permits of lost claims renewed",
        breaks="a permit nobody uses is kept from others",
        file="kernel/keeper/keeper.py",
        old="known_lost=self._lost_since",
        new="known_lost=()",
        suites=("tests/keeper/test_keeper.py",),
    ),
    Mutant(
        name="claim renewed before its permit",
        breaks="a permit ends before its claim, and another call starts",
        file="kernel/engine/renewing.py",
        old=(
            "        self._capacity.renew(tokens, lease_ms=self._lease_ms)\n"
            "        return self._store.renew(wanted, lease_ms=self._lease_ms)\n"
        ),
        new=(
            "        lost = self._store.renew(wanted, lease_ms=self._lease_ms)\n"
            "        self._capacity.renew(tokens, lease_ms=self._lease_ms)\n"
            "        return lost\n"
        ),
        suites=("tests/keeper/test_keeper.py",),
    ),
    Mutant(
        name="passed past the first",
        breaks="the next is served before one that others have to run",
        file="kernel/engine/passing.py",
        old="if first is None or first is not following[0] or not may(first):",
        new="if first is None or not may(first):",
        suites=(_FAIRLY,),
    ),
    Mutant(
        name="passed past other queues",
        breaks="what is due in another queue waits behind a line",
        file="kernel/engine/passing.py",
        old=(
            "        if any(hints.has_due(queue) for queue in queues if queue != "
            "waiter.queue):\n"
            "            return False\n"
        ),
        new="",
        suites=(_FAIRLY,),
    ),
    Mutant(
        name="passed over kept places",
        breaks="more hold and keep a place than a resource allows",
        file="kernel/store/capacity_pipelines.py",
        old=(
            '            below({"$add": [{"$size": "$$v.holders"}, ahead]}),\n'
            '            in_rate("$$v.starts", "$$at", ahead),\n'
        ),
        new=(
            '            below({"$size": "$$v.holders"}),\n'
            '            in_rate("$$v.starts", "$$at", ahead),\n'
        ),
        suites=("tests/capacity/test_store.py",),
    ),
    Mutant(
        name="start of what did not begin spent",
        breaks="a rate is used up by steps that never ran",
        file="kernel/engine/wave.py",
        old=("        if not begun:\n            self._give_back(steps)\n"),
        new="",
        suites=(_FAIRLY,),
    ),
    Mutant(
        name="start of a lost next step spent",
        breaks="a rate is used up by steps that never ran",
        file="kernel/engine/wave.py",
        old=(
            "        if not is_home:\n"
            "            self._give_back(home.begins)\n"
            "            return ()\n"
        ),
        new=("        if not is_home:\n            return ()\n"),
        suites=(_FAIRLY,),
    ),
    Mutant(
        name="no look after put off",
        breaks="a free place stands idle until somebody looks",
        file="kernel/engine/wave.py",
        old=("        self._permits.look_again(refused)\n        if begun:\n"),
        new="        if begun:\n",
        suites=(_FAIRLY,),
    ),
    Mutant(
        name="a bad part ends reconciliation",
        breaks="what stands in one document keeps all other parts from running",
        file="kernel/reconcile/duties.py",
        old=("        except Exception as exc:\n            # Whatever stands"),
        new=("        except ZeroDivisionError as exc:\n            # Whatever stands"),
        suites=("tests/protocol/test_duties.py",),
    ),
    Mutant(
        name="cursor kept by anybody",
        breaks="who lost the duty sends its holder back or past what it has not seen",
        file="kernel/store/leases.py",
        old='{"_id": duty, "holder": holder}, {"$set": {f"cursors',
        new='{"_id": duty}, {"$set": {f"cursors',
        suites=("tests/protocol/test_duties.py",),
    ),
    Mutant(
        name="duty given back by anybody",
        breaks="two processes reconcile at once",
        file="kernel/store/leases.py",
        old='{"_id": duty, "holder": holder}, [{"$set": {"until"',
        new='{"_id": duty}, [{"$set": {"until"',
        suites=("tests/protocol/test_duties.py",),
    ),
    Mutant(
        name="turns without an interval",
        breaks="every beat of every process does what one should",
        file="kernel/store/leases.py",
        old='is_due = {"$lte": [{"$ifNull": ["$began", since]}, since]}',
        new='is_due = {"$literal": True}',
        suites=("tests/protocol/test_duties.py",),
    ),
    Mutant(
        name="raised in no lane",
        breaks="who is raised goes on waiting in the worse lane",
        file="kernel/publish/publisher.py",
        old="                self._hints.place(raised, stored.now)",
        new="                pass",
        suites=("tests/protocol/test_duties.py",),
    ),
    Mutant(
        name="work before the key",
        breaks="a repeat beside its first request is judged by what that has just done",
        file="jobs/services/idempotency.py",
        old="    row = _insert(claim)\n    answer = perform()\n",
        new="    answer = perform()\n    row = _insert(claim)\n",
        suites=("tests/api/test_idempotency.py",),
    ),
    Mutant(
        name="found and nobody rung for",
        breaks="what reconciliation finds waits until somebody looks",
        file="kernel/reconcile/lost_candidates.py",
        old="        hints.ring(queue)\n",
        new="        pass\n",
        suites=("tests/protocol/test_reconciling.py",),
    ),
    Mutant(
        name="woken without a look",
        breaks="one whose wake-up was refused has no timer any more",
        file="kernel/reconcile/due_waits.py",
        old="    if woken == len(due):\n",
        new="    if True:\n",
        suites=("tests/waiting/test_timers.py",),
    ),
    Mutant(
        name="timers dropped before anybody woke",
        breaks="an outage at the wake-up leaves a page of sleepers without timers",
        file="kernel/reconcile/ticking.py",
        old=(
            "            count, awake = activate_all("
            "self._scan, self._instances, self._hints, found.values())\n"
            "            woken += count\n"
            "            self._hints.hints.drop_timers(queue, due)\n"
        ),
        new=(
            "            self._hints.hints.drop_timers(queue, due)\n"
            "            count, awake = activate_all("
            "self._scan, self._instances, self._hints, found.values())\n"
            "            woken += count\n"
        ),
        suites=("tests/waiting/test_timers.py",),
    ),
    Mutant(
        name="ended at its turn to send",
        breaks="nobody sends any more, and all that come wait for it",
        file="kernel/store/grouping.py",
        old="            if mine.sends:\n                self._hand_on()\n",
        new="",
        suites=("tests/unit/test_grouping.py",),
    ),
    Mutant(
        name="handed on after it moved",
        breaks="a slow hand cuts the delay of one that has run since",
        file="kernel/protocol/queueing.py",
        old=(
            "        claim_token=UNCLAIMED,\n        revision=revision,\n    )\n"
            '    changes: dict[str, Expression] = {"claimable_time"'
        ),
        new=(
            "        claim_token=UNCLAIMED,\n    )\n"
            '    changes: dict[str, Expression] = {"claimable_time"'
        ),
        suites=(_FAIRLY,),
    ),
    Mutant(
        name="passed without its revision",
        breaks="one whose holder died since is not suspected of it, and runs beside others",
        file="kernel/protocol/queueing.py",
        old=(
            "        step_seqs={step: instance.steps[step].seq},\n"
            "        revision=instance.revision,\n"
        ),
        new="        step_seqs={step: instance.steps[step].seq},\n",
        suites=(_FAIRLY,),
    ),
    Mutant(
        name="everybody makes the handed due",
        breaks="each of a group that leaves writes for those one of them makes due",
        file="kernel/store/permit_groups.py",
        old="mine = tuple(each for each in those if each in open_ones)",
        new="mine = tuple(each for each in those if each in state.handed)",
        suites=("tests/capacity/test_store.py",),
    ),
    Mutant(
        name="anybody gathers",
        breaks="a place is kept from the first in line for one behind it",
        file="kernel/engine/gathering.py",
        old="if is_first and waiter.is_plain and",
        new="if waiter.is_plain and",
        suites=("tests/capacity/test_gathering.py",),
    ),
)
