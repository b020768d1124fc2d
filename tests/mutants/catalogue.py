"""The mutants of the instance protocol and its store."""

from tests.mutants.mutant import (
    GROUPS,
    GUARDS,
    INTERLEAVE,
    RECOVERIES,
    ROUNDS,
    RUNNING,
    UNCERTAIN,
    UNIT,
    WAITING,
    Mutant,
)

_COMPILING = "kernel/store/compiling.py"
_CLAIMING = "kernel/store/claiming.py"
_OWNING = "kernel/protocol/owning.py"
_STARTING = "kernel/protocol/starting.py"
_HOMECOMING = "kernel/protocol/homecoming.py"
_SETTLING = "kernel/protocol/settling.py"
_JUDGING = "kernel/protocol/judging.py"

MUTANTS = (
    Mutant(
        name="commit without token",
        breaks="a stale holder goes on writing (I4)",
        file=_COMPILING,
        old="    if guard.claim_token is not None:\n",
        new="    if guard.claim_token == UNCLAIMED:\n",
        suites=(GUARDS, INTERLEAVE),
    ),
    Mutant(
        name="commit without step seq",
        breaks="a late command is applied to a step that has moved on",
        file=_COMPILING,
        old='        found[f"steps.{step}.seq"] = seq\n',
        new='        found[f"steps.{step}.seq"] = {"$gte": 0 * seq}\n',
        suites=(INTERLEAVE, UNCERTAIN),
    ),
    Mutant(
        name="activate without revision",
        breaks="an activation overwrites what came between reading and writing",
        file=_COMPILING,
        old='        found["revision"] = guard.revision\n',
        new="        pass\n",
        suites=(GUARDS, WAITING, INTERLEAVE, "tests/waiting/test_signals.py"),
    ),
    Mutant(
        name="activate although held",
        breaks="a timer moves a step under somebody's claim (I4)",
        file=_COMPILING,
        old="None if guard.claim_token == UNCLAIMED else guard.claim_token",
        new='{"$ne": ""} if guard.claim_token == UNCLAIMED else guard.claim_token',
        suites=(GUARDS, WAITING, INTERLEAVE, "tests/waiting/test_timers.py"),
    ),
    Mutant(
        name="replay without round",
        breaks="two retries of a user both start a round (I6)",
        file=_COMPILING,
        old='        found["fencing_token"] = guard.fencing_token\n',
        new="        pass\n",
        suites=(GUARDS, INTERLEAVE, ROUNDS),
    ),
    Mutant(
        name="priority lowered",
        breaks="a later registration puts work into a worse lane",
        file=_COMPILING,
        old='        found["priority"] = {"$gt": guard.priority_above}\n',
        new="        pass\n",
        suites=(GUARDS, ROUNDS, INTERLEAVE, "tests/protocol/test_start_many.py"),
    ),
    Mutant(
        name="claim before it is due",
        breaks="a claim is taken from a living holder (I3)",
        file=_CLAIMING,
        old='            **self._clock.is_past("claimable_time"),\n',
        new="",
        suites=(INTERLEAVE,),
    ),
    Mutant(
        name="claim of any definition",
        breaks="an unknown step protocol is guessed at (I8)",
        file=_CLAIMING,
        old='            "definition_fingerprint": {"$in": list(fingerprints)},\n',
        new="",
        suites=("tests/protocol/test_incompatible.py",),
    ),
    Mutant(
        name="claim straight after an absence",
        breaks="living holders lose their claims because nobody could renew",
        file=_CLAIMING,
        old='            due["claim_token"] = {"$exists": False}\n',
        new="            pass\n",
        suites=(GUARDS, "tests/trust/test_outages.py"),
    ),
    Mutant(
        name="renew without token",
        breaks="a stale holder prolongs the claim of another and never hears of its loss",
        file=_CLAIMING,
        old='{"workflow_id": wid, "claim_token": token, "status": {"$nin": _TERMINAL}}, later',
        new='{"workflow_id": wid, "status": {"$nin": _TERMINAL}}, later',
        suites=(GUARDS, "tests/keeper", RUNNING, INTERLEAVE),
    ),
    Mutant(
        name="group claim read without tokens",
        breaks="a process believes it holds what another one holds (I4)",
        file=_CLAIMING,
        old='            "claim_token": {"$in": tokens},\n',
        new="",
        suites=(GROUPS, INTERLEAVE),
    ),
    Mutant(
        name="group's answer believed by its size",
        breaks="a claim that was lost is carried on because its group matched mostly",
        file="kernel/store/group_commits.py",
        old="    if matched != len(commits) - len(refused):\n",
        new="    if not matched:\n",
        suites=(GROUPS, INTERLEAVE),
    ),
    Mutant(
        name="group claims whoever is named",
        breaks="a group takes over what others hold (I4)",
        file=_CLAIMING,
        old='{"workflow_id": {"$in": list(workflow_ids)}, **self._due(fingerprints, lease_ms)}\n',
        new='{"workflow_id": {"$in": list(workflow_ids)}}\n',
        suites=(GROUPS, INTERLEAVE),
    ),
    Mutant(
        name="first wave of any instance",
        breaks="claiming begins steps of an instance that has run before",
        file=_COMPILING,
        old='                    {"$eq": ["$revision", FIRST_REVISION]},\n',
        new="",
        suites=("tests/protocol/test_first_wave.py", INTERLEAVE),
    ),
    Mutant(
        name="free without token",
        breaks="the claim of a living successor is freed",
        file=_OWNING,
        old="        claim_token=instance.claim_token,\n        step_seqs={name: instance.steps",
        new="        claim_token=None,\n        step_seqs={name: instance.steps",
        suites=(GUARDS, INTERLEAVE, "tests/keeper", UNIT),
    ),
    Mutant(
        name="supersede of failing",
        breaks="the compensation of a failing instance is cut off",
        file=_OWNING,
        old="SUPERSEDABLE = (InstanceStatus.RUNNING, InstanceStatus.WAITING)\n",
        new=(
            "SUPERSEDABLE = (InstanceStatus.RUNNING, InstanceStatus.WAITING,"
            " InstanceStatus.FAILING)\n"
        ),
        suites=(ROUNDS, INTERLEAVE),
    ),
    Mutant(
        name="supersede keeps the claim",
        breaks="the worker of a superseded instance goes on under its claim (I6)",
        file=_OWNING,
        old='        **released(),\n        "status": Lit(InstanceStatus.CANCELED.value),\n',
        new='        "status": Lit(InstanceStatus.CANCELED.value),\n',
        suites=(INTERLEAVE,),
    ),
    Mutant(
        name="signal wakes a step twice",
        breaks="a slow hand wakes with a signal that is spent",
        file="kernel/protocol/signaling.py",
        old="        and signal.signal_id not in instance.steps[wait.step].woken_by\n",
        new="",
        suites=(GUARDS, WAITING, "tests/waiting/test_signals.py", INTERLEAVE),
    ),
    Mutant(
        name="signal of another generation",
        breaks="a late signal wakes the wait of a newer generation",
        file="kernel/protocol/signaling.py",
        old=(
            "        and (wait.signal_type, wait.wait_key, wait.generation)\n"
            "        == (signal.signal_type, signal.wait_key, signal.generation)\n"
        ),
        new=(
            "        and (wait.signal_type, wait.wait_key)\n"
            "        == (signal.signal_type, signal.wait_key)\n"
        ),
        suites=("tests/waiting/test_signals.py",),
    ),
    Mutant(
        name="no look after suspend",
        breaks="a signal that came before the wait wakes nobody until reconciliation",
        file="kernel/engine/running.py",
        old="        _look_into_inbox(machine, held)\n",
        new="        pass\n",
        suites=("tests/waiting/test_signals.py", "tests/waiting/test_graphs.py", WAITING),
    ),
    Mutant(
        name="step enters before its signal is marked",
        breaks="a completed step forgets what woke it, and the signal wakes the next one",
        file="kernel/engine/wave.py",
        old="        return not ids or mark_held(self._machine.inbox, self._held, ids)\n",
        new="        return True or mark_held(self._machine.inbox, self._held, ids)\n",
        suites=(WAITING, "tests/waiting/test_signals.py"),
    ),
    Mutant(
        name="wake without asking the inbox again",
        breaks="a slow hand wakes the next wait with a signal that is closed",
        file="kernel/signals/delivery.py",
        old="            if stored is not None and stored.status == PENDING:\n",
        new="            if stored is not None:\n",
        suites=("tests/waiting/test_signals.py", WAITING, INTERLEAVE),
    ),
    Mutant(
        name="stale round accepted",
        breaks="a late registration of an old round is confirmed (I6)",
        file=_STARTING,
        old="    if fencing_token < existing.fencing_token:\n        return Start.STALE_ROUND\n",
        new="",
        suites=(ROUNDS, INTERLEAVE),
    ),
    Mutant(
        name="replay resets seq",
        breaks="a command of the old round matches a step of the new one (I6)",
        file=_STARTING,
        old='                    "seq": state.seq + 1,\n',
        new='                    "seq": 0,\n',
        suites=(ROUNDS, INTERLEAVE),
    ),
    Mutant(
        name="replay runs completed steps",
        breaks="a completed step runs again (I5)",
        file=_STARTING,
        old="        if not state.is_done:\n",
        new="        if state is not None:\n",
        suites=(ROUNDS, INTERLEAVE),
    ),
    Mutant(
        name="waiting counts as an attempt",
        breaks="waits use up retries (I7)",
        file=_HOMECOMING,
        old='        f"{path}.attempt": Add(-1),\n',
        new="",
        suites=("tests/waiting/test_timers.py", "tests/protocol/test_waiting.py"),
    ),
    Mutant(
        name="homecoming keeps recoveries",
        breaks="deaths are no longer counted in a row: a lucky step fails as worker_lost",
        file=_HOMECOMING,
        old="    if state.recoveries:\n",
        new="    if state.recoveries < 0:\n",
        suites=(RECOVERIES,),
    ),
    Mutant(
        name="settled in the wrong order",
        breaks="a workflow that was canceled fails, and compensates",
        file="kernel/protocol/readiness.py",
        old="    if any(is_canceled(state) for state in instance.steps.values()):\n",
        new=(
            "    if any(is_canceled(s) for s in instance.steps.values()) and not any(\n"
            "        s.status is StepStatus.FAILED for s in instance.steps.values()\n"
            "    ):\n"
        ),
        suites=(UNIT, "tests/protocol/test_canceling.py"),
    ),
    Mutant(
        name="a pending step holds the claim back",
        breaks="one step's retry keeps a worker (I7)",
        file=_SETTLING,
        old="    others = tuple(name for name in ready if name not in wave)\n",
        new="    others = ready\n",
        suites=(UNIT, "tests/protocol/test_waves.py"),
    ),
    Mutant(
        name="failing leaves interrupted steps",
        breaks="an instance that is over looks as if a step ran",
        file=_SETTLING,
        old="        if state.status in (StepStatus.WAITING, StepStatus.RUNNING):\n",
        new="        if state.status is StepStatus.WAITING:\n",
        suites=(UNIT, INTERLEAVE),
    ),
    Mutant(
        name="uncertain answer taken as applied",
        breaks="a finished activity's result is thrown away",
        file=_JUDGING,
        old="Verdict.APPLIED if moved or _changed(instance, commit) else Verdict.SEND_AGAIN",
        new="Verdict.APPLIED",
        suites=(UNIT, UNCERTAIN),
    ),
    Mutant(
        name="uncertain answer asked for ever",
        breaks="a seq that rose by two counts as not applied: the holder asks for ever",
        file=_JUDGING,
        old="        moved = bool(risen) and min(risen) >= 1\n",
        new="        moved = bool(risen) and min(risen) == 1 == max(risen)\n",
        suites=(UNIT, INTERLEAVE),
    ),
    Mutant(
        name="lost commit sent again without a look",
        breaks="an applied commit whose answer was lost counts as a lost claim",
        file="kernel/engine/committing.py",
        old="store.commit_grouped(commit) if attempt == 0 else _settle(store, commit)",
        new="store.commit_grouped(commit) if attempt == 0 else store.commit(commit)",
        suites=(UNCERTAIN, INTERLEAVE),
    ),
)
