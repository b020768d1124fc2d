"""A process is itself and no other: not the next one with its pid."""

from kernel.keeper.processes import Process
from tests.keeper.children import child, identity
from tests.kit.waiting import eventually


def test_a_living_process_is_not_dead() -> None:
    assert not Process.current().is_dead()
    with child() as process:
        assert not identity(process).is_dead()


def test_a_process_nobody_reaped_is_dead() -> None:
    with child() as process:
        who = identity(process)
        process.kill()
        eventually(who.is_dead, 5, "a zombie counts as alive")
        assert process.returncode is None
        process.wait()
        assert who.is_dead()


def test_a_stranger_with_the_same_pid_is_never_killed() -> None:
    with child() as process:
        before = Process(process.pid, identity(process).started - 1)
        assert before.is_dead()
        before.kill()
        identity(process).kill()
        assert process.wait(5) == -9
        identity_after_the_end = Process(process.pid, before.started)
        identity_after_the_end.kill()
