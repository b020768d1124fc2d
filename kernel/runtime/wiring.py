"""Builds every part of one kernel from its configuration, once.

Guarantees that building touches no network. Leaves to others: using the parts
(`kernel.runtime.kernel`).
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from functools import partial
from typing import Final

from kernel.config import KernelConfig
from kernel.definition import Registry
from kernel.engine.drain import Drain
from kernel.engine.handing_on import HandingOn
from kernel.engine.heartbeat import Heartbeat
from kernel.engine.hinting import HintWriter
from kernel.engine.invoke import Invoker
from kernel.engine.keeping import ClaimKeeper
from kernel.engine.machine import Machine
from kernel.engine.motion import Motion
from kernel.engine.permits import PermitDesk
from kernel.engine.renewing import LeaseRenewal
from kernel.engine.taking import Taker
from kernel.hints import Hints, NoHints, RedisHints
from kernel.keeper import ChildKeeper, ClaimSlots
from kernel.publish import Publisher
from kernel.reconcile import Reconciler, Ticker
from kernel.signals import SignalDelivery
from kernel.store import (
    CapacityStore,
    Connection,
    DutyLeases,
    GroupedInstances,
    InstanceScan,
    InstanceStore,
    PermitGroups,
    SignalInbox,
    StoreClock,
    Waiters,
    WorkerBeats,
)

#: The slots a worker's children publish their claims in, and which of them is this child's.
SlotOfChild = tuple[ClaimSlots, int]

#: Marks this process among others of the same host and pid over time.
_STARTED: Final = time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a kernel; every connection is lazy, so building cannot fail on a dead server."""

    owner: str
    registry: Registry
    clock: StoreClock
    connection: Connection
    store: InstanceStore
    scan: InstanceScan
    leases: DutyLeases
    beats: WorkerBeats
    permits: PermitDesk
    renewal: LeaseRenewal
    hints: HintWriter
    publisher: Publisher
    delivery: SignalDelivery
    keeper: ClaimKeeper
    machine: Machine
    drain: Drain
    reconciler: Reconciler
    ticker: Ticker


def build_parts(config: KernelConfig, child: SlotOfChild | None) -> Parts:
    """Return the parts of a kernel.

    Raises:
        UsageError: a URL that is none.
    """
    owner = f"{socket.gethostname()}:{os.getpid()}:{_STARTED}"
    registry = Registry()
    clock = StoreClock(config.clock_offset_ms)
    hints = HintWriter(_hints(config, clock), config.ring)
    # After the hints, whose URL may be refused: a client of MongoDB would have to be closed.
    connection = Connection(config.mongo_url, database=config.database)
    motion = Motion()
    store = InstanceStore(connection, clock, group_max=config.group_commits, others=motion)
    scan, beats = InstanceScan(connection, clock), WorkerBeats(connection, clock)
    permits = _permits(config, connection, clock, hints)
    renewal = LeaseRenewal(store, permits.store, lease_ms=config.lease_ms)
    keeper = _claim_keeper(config, renewal, child)
    inbox, leases = SignalInbox(connection, clock), DutyLeases(connection, clock)
    grouped = GroupedInstances(connection, clock, store)
    delivery = SignalDelivery(inbox, scan, grouped, hints)
    machine = _machine(
        config, store, registry, hints, keeper, permits, owner, inbox, delivery, motion
    )
    minders = _minders(store, scan, grouped, leases, hints, inbox, delivery, permits, owner)
    taker = Taker(machine, types_off=config.types_off, is_served=beats.is_served)
    return Parts(
        owner=owner,
        registry=registry,
        clock=clock,
        connection=connection,
        store=store,
        scan=scan,
        leases=leases,
        beats=beats,
        permits=permits,
        renewal=renewal,
        hints=hints,
        publisher=Publisher(store, grouped, registry, hints),
        delivery=delivery,
        keeper=keeper,
        machine=machine,
        drain=Drain(machine, taker, slots=config.slots),
        reconciler=minders[0],
        ticker=minders[1],
    )


def _minders(
    store: InstanceStore,
    scan: InstanceScan,
    instances: GroupedInstances,
    leases: DutyLeases,
    hints: HintWriter,
    inbox: SignalInbox,
    delivery: SignalDelivery,
    permits: PermitDesk,
    owner: str,
) -> tuple[Reconciler, Ticker]:
    reconciler = Reconciler(
        scan=scan,
        instances=instances,
        leases=leases,
        hints=hints,
        inbox=inbox,
        delivery=delivery,
        permits=permits,
        holder=owner,
    )
    ticker = Ticker(
        store=store,
        scan=scan,
        instances=instances,
        hints=hints,
        handing_on=permits.handing_on,
        rebuild=partial(reconciler.run, rebuild=True),
    )
    return reconciler, ticker


def _permits(
    config: KernelConfig, connection: Connection, clock: StoreClock, hints: HintWriter
) -> PermitDesk:
    store, waiters = CapacityStore(connection, clock), Waiters(connection, clock)
    groups = PermitGroups(store, lease_ms=config.lease_ms)
    handing_on = HandingOn(store, groups, waiters, hints)
    return PermitDesk(store=store, groups=groups, waiters=waiters, handing_on=handing_on)


def _machine(
    config: KernelConfig,
    store: InstanceStore,
    registry: Registry,
    hints: HintWriter,
    keeper: ClaimKeeper,
    permits: PermitDesk,
    owner: str,
    inbox: SignalInbox,
    delivery: SignalDelivery,
    motion: Motion,
) -> Machine:
    # A kept child waits for ever: its keeper ends it, so that no hung thread is left behind.
    grace = None if isinstance(keeper, ChildKeeper) else config.hang_grace_seconds
    return Machine(
        store=store,
        inbox=inbox,
        look_into_inbox=delivery.look,
        registry=registry,
        invoker=Invoker(around=config.around_activity, hang_grace=grace),
        keeper=keeper,
        permits=permits,
        hints=hints,
        motion=motion,
        owner=owner,
        lease_ms=config.lease_ms,
        hang_grace=config.hang_grace_seconds,
        max_recoveries=config.max_recoveries,
        document_bytes=store.document_bytes,
        default_ports=config.ports,
    )


def _claim_keeper(
    config: KernelConfig, renewal: LeaseRenewal, child: SlotOfChild | None
) -> ClaimKeeper:
    if child is None:
        return Heartbeat(renewal, lease_ms=config.lease_ms)
    slots, index = child
    return ChildKeeper(slots, index, renewal=renewal, lease_ms=config.lease_ms)


def _hints(config: KernelConfig, clock: StoreClock) -> Hints:
    if config.redis_url is None:
        return NoHints()
    return RedisHints(
        config.redis_url,
        key_prefix=config.key_prefix,
        clock_offset_ms=lambda: clock.offset_ms,
    )
