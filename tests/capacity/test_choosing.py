"""A closed resource holds up nobody who does not need it, however many stand before him who do."""

import pytest

from kernel.engine import handing_on
from kernel.testing import run_until_idle
from tests.capacity.test_gathering import Crowd
from tests.kit.kernels import QUEUE, MakeKernel


def test_a_closed_resource_holds_up_nobody_who_does_not_need_it(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handing_on, "_LOOK_FURTHER", 1)
    crowd = Crowd(make_kernel, limit=2)
    for n in range(5):
        crowd.comes(f"both-{n}", "a", "b")
    crowd.comes("one", "a")
    crowd.comes("other", "a", "c")
    crowd.gives("c")
    crowd.kernel.capacity.pause("b")
    crowd.gives("a", 0)  # kept by the first, who waits for `b` now
    crowd.gives("a", 1)
    crowd.kernel.drain([QUEUE])
    assert crowd.ran == ["one", "other"]
    assert crowd.kernel.capacity.status("a").waiting == 4
    crowd.kernel.capacity.resume("b")
    crowd.gives("b", 0)
    run_until_idle(crowd.kernel, [QUEUE])
    assert crowd.all_completed()


def test_whoever_keeps_its_place_in_a_closed_one_is_found_behind_those_who_do_not(
    make_kernel: MakeKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handing_on, "_LOOK_FURTHER", 1)
    crowd = Crowd(make_kernel)
    crowd.gives("a")
    for name in ("first", "second"):
        crowd.comes(name, "a", "b")
        assert crowd.waits_for(name) == ("b",)
    assert crowd.takes("a")
    crowd.comes("keeps", "a", "b")
    crowd.gives("a")
    assert crowd.waits_for("keeps") == ("b",)
    crowd.gives("b")
    crowd.kernel.drain([QUEUE])
    assert crowd.ran[0] == "keeps"
