"""One kernel a process, none across a fork, and definitions from every app."""

import os
import sys

import pytest

from jobs import keeping, runtime, worker
from jobs.plans import ARTICLE
from kernel import Kernel


def test_process_builds_its_kernel_once(kernel: Kernel) -> None:
    assert runtime.get_kernel() is kernel
    assert runtime.get_kernel() is runtime.get_kernel()


def test_forked_child_does_not_use_its_parent_s_kernel(kernel: Kernel) -> None:
    assert runtime.get_kernel() is kernel
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        inherited = runtime._process.kernel is not None
        os.write(writer, b"inherited" if inherited else b"none")
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    assert answer == b"none"
    assert runtime.get_kernel() is kernel


def test_definitions_are_registered_once_a_kernel(kernel: Kernel) -> None:
    worker.register_definitions(kernel)
    worker.register_definitions(kernel)
    served = [definition.plan.type for definition in worker.installed_definitions()]
    assert ARTICLE.type in served
    assert len(set(served)) == len(served)
    assert "jobs.activities.article" in sys.modules


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("listened", "warns"), [(1.0, False), (60.0, True)])
def test_only_who_has_listened_for_as_long_warns_that_beat_was_silent(
    kernel: Kernel, caplog: pytest.LogCaptureFixture, listened: float, warns: bool
) -> None:
    caplog.set_level("INFO", logger="jobs.keeping")
    keeping._reconcile_if_silent(listened)
    assert [record.levelname for record in caplog.records] == ["WARNING" if warns else "INFO"]
    keeping._reconcile_if_silent(listened)
    assert len(caplog.records) == 1, "somebody has just reconciled"
