"""Reads stored facts in bounded pages, and looks twice before it says anything.

Instances are judged one reading at a time, so nothing races; what is found is read again by
majority and told only if it is found again. Signals are judged together with their instances, which
are two readings, and resources with their claims likewise: those found are looked at again from
both sides.

Guarantees that nothing is written and that memory is bounded by one page. Leaves to others: the
rules (`instances`, `signals`, `resources`), repair (nobody does that by itself).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from kernel.store import FactReader, InstanceScan
from kernel.store.reading import Read, ReadSignal
from kernel.store.reading_resources import ResourceRead, ResourceReader
from kernel.verifying.finding import Finding
from kernel.verifying.instances import of_instance
from kernel.verifying.resources import of_resource
from kernel.verifying.signals import of_signal

_PAGE: Final = 500
_Row = TypeVar("_Row")


@dataclass(slots=True)
class Looked:
    """How much has been looked at so far, by kind: instances, signals, resources."""

    counts: Counter[str] = field(default_factory=Counter)


class Verifier:
    """Yields what contradicts the invariants; may run beside everything else."""

    def __init__(
        self,
        reader: FactReader,
        scan: InstanceScan,
        resources: ResourceReader,
    ) -> None:
        self._reader = reader
        self._scan = scan
        self._resources = resources

    def verify(
        self,
        *,
        limit: int | None = None,
        sample: int | None = None,
        on_page: Callable[[Looked], None] = lambda _: None,
    ) -> Iterator[Finding]:
        """Yield findings: of indexes, of instances, of pending signals, of resources.

        `limit` bounds instances, signals and resources each; with `sample` instances are drawn at
        random. `on_page` hears how much has been looked at, after each page.

        Raises:
            StoreUnavailable: MongoDB did not answer; what was yielded holds, the rest is not known.
        """
        looked = Looked()
        for name in self._reader.missing_indexes():
            yield Finding(subject=name, invariant=2, fact="has no unique index")
        drawn = (
            self._reader.sample(sample, page=_PAGE)
            if sample is not None
            else _pages(self._reader.page, lambda read: read.place, limit)
        )
        for page in drawn:
            yield from self._of_page(page)
            looked.counts["instances"] += len(page)
            on_page(looked)
        for signals in _pages(self._reader.pending, lambda one: one.place, limit):
            yield from self._of_signals(signals)
            looked.counts["signals"] += len(signals)
            on_page(looked)
        for resources in _pages(self._resources.page, lambda one: one.name, limit):
            yield from self._of_resources(resources)
            looked.counts["resources"] += len(resources)
            on_page(looked)

    def _of_page(self, page: Sequence[Read]) -> Iterator[Finding]:
        found = [finding for read in page for finding in _of_read(read)]
        times = Counter(read.workflow_id for read in page)
        found += [_doubled(one, n) for one, n in times.items() if n > 1]
        if not found:
            return
        told = {finding.subject for finding in found}
        again = self._reader.again([read for read in page if read.workflow_id in told])
        times = Counter(read.workflow_id for read in again)
        still = {finding for read in again for finding in _of_read(read)}
        still |= {_doubled(one, n) for one, n in times.items() if n > 1}
        yield from (finding for finding in dict.fromkeys(found) if finding in still)

    def _of_signals(self, signals: Sequence[ReadSignal]) -> Iterator[Finding]:
        found = self._judged(signals)
        if not found:
            return
        told = {finding.subject for finding in found}
        suspects = [read for read in signals if str(read.signal_id) in told]
        still = set(self._judged(self._reader.pending_again(suspects)))
        yield from (finding for finding in found if finding in still)

    def _of_resources(self, resources: Sequence[ResourceRead]) -> Iterator[Finding]:
        found = [finding for read in resources for finding in of_resource(read)]
        if not found:
            return
        again = self._resources.again({finding.subject for finding in found})
        still = {finding for read in again for finding in of_resource(read)}
        yield from (finding for finding in found if finding in still)

    def _judged(self, signals: Sequence[ReadSignal]) -> list[Finding]:
        readable = [read.signal for read in signals if read.signal is not None]
        outlines = self._scan.outlines({signal.workflow_id for signal in readable})
        return [
            _unreadable(str(read.signal_id), read.fault) for read in signals if read.signal is None
        ] + [
            finding
            for signal in readable
            if (outline := outlines.get(signal.workflow_id)) is not None
            for finding in of_signal(signal, outline.instance, outline.now)
        ]


def _pages(
    read: Callable[..., list[_Row]], key: Callable[[_Row], str], limit: int | None
) -> Iterator[list[_Row]]:
    """Yield bounded pages in order of `key`, `limit` rows in all."""
    after, left = None, limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(_PAGE, left)
        page = read(limit=size, after=after)
        if not page:
            return
        yield page
        after = key(page[-1])
        left = None if left is None else left - len(page)


def _of_read(read: Read) -> list[Finding]:
    if read.instance is not None:
        return of_instance(read.instance)
    return [_unreadable(read.workflow_id, read.fault)]


def _unreadable(subject: str, fault: str) -> Finding:
    return Finding(subject=subject, invariant=8, fact=f"cannot be read: {fault}")


def _doubled(workflow_id: str, times: int) -> Finding:
    return Finding(subject=workflow_id, invariant=2, fact=f"is stored {times} times")
