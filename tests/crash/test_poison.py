"""A poison pill does not eat workers for ever, and takes nobody along."""

from tests.crash.lab import Lab


def test_step_that_always_kills_its_process_is_given_up_and_its_siblings_complete(
    lab: Lab,
) -> None:
    _, violations = lab.run("poison", None)
    assert violations == []
