"""Text that no database can hold names nothing: every call that takes an identity says so."""

from collections.abc import Callable
from typing import Any

import pytest

from kernel import InvalidValue, Kernel, StartItem
from tests.kit.kernels import MakeKernel, definition

BAD = "wf_\udcff"
ORDER = definition("test.identity", {"a": lambda _: None})


def identity(**part: str) -> dict[str, Any]:
    whole = {"workflow_id": "wf_1", "signal_type": "paid", "wait_key": "k", "signal_id": "s"}
    return whole | part


def rings_with(part: str) -> Callable[[Kernel], object]:
    return lambda kernel: kernel.deliver_signal(**identity(**{part: BAD}))


CALLS: dict[str, Callable[[Kernel], object]] = {
    "get": lambda kernel: kernel.get(BAD),
    "find": lambda kernel: kernel.find(biz_key=BAD),
    "why": lambda kernel: kernel.why(BAD),
    "supersede": lambda kernel: kernel.supersede(BAD, reason="x"),
    "list by type": lambda kernel: kernel.list_instances(type=BAD),
    "list by status": lambda kernel: kernel.list_instances(status=BAD),
    "list after": lambda kernel: kernel.list_instances(after=BAD),
    "rounds": lambda kernel: kernel.rounds_of([BAD]),
    "start": lambda kernel: kernel.start_or_resume(ORDER.plan, biz_key=BAD),
    "start many": lambda kernel: kernel.start_many(ORDER.plan, [StartItem(BAD)]),
    "claim": lambda kernel: kernel.run_once([BAD]),
    "status": lambda kernel: kernel.capacity.status(BAD),
    "pause": lambda kernel: kernel.capacity.pause(BAD),
    **{f"signal's {part}": rings_with(part) for part in identity()},
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_lone_surrogate_in_an_identity_is_refused_by_name(
    make_kernel: MakeKernel, call: Callable[[Kernel], object]
) -> None:
    kernel = make_kernel(ORDER, with_redis=False)
    with pytest.raises(InvalidValue) as refused:
        call(kernel)
    str(refused.value).encode()
    assert kernel.list_instances() == []
