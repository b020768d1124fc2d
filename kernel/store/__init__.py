"""Mongo, the keeper of facts: the only package that imports the driver (design 1.3, 1.4).

`schema` says what exists, `clock` whose time counts, `codec` how values travel, `compiling` turns
commits into guarded updates, `instances` writes and reads them, `grouped` many of them at once by
the bulk commands of `batches`, `scanning` finds what nobody was told about, `leases` keeps duties
single. Decisions are made in `kernel.protocol`; here a guard is compiled, sent, and answered with
matched or not.
"""

from __future__ import annotations

from kernel.store.capacity import CapacityStore
from kernel.store.clock import StoreClock
from kernel.store.connection import Connection
from kernel.store.exchanging import Leaving
from kernel.store.grouped import GroupedInstances
from kernel.store.instances import InstanceStore
from kernel.store.leases import DutyLeases
from kernel.store.permit_groups import PermitGroups
from kernel.store.port import Stored
from kernel.store.reading import FactReader
from kernel.store.scanning import InstanceScan, Outline
from kernel.store.schema import ensure_schema
from kernel.store.signals import SignalInbox
from kernel.store.waiters import Waiters
from kernel.store.workers import Served, WorkerBeat, WorkerBeats

__all__ = [
    "CapacityStore",
    "Connection",
    "DutyLeases",
    "FactReader",
    "GroupedInstances",
    "InstanceScan",
    "InstanceStore",
    "Leaving",
    "Outline",
    "PermitGroups",
    "Served",
    "SignalInbox",
    "StoreClock",
    "Stored",
    "Waiters",
    "WorkerBeat",
    "WorkerBeats",
    "ensure_schema",
]
