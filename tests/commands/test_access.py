"""`manage.py create_token` and `ensure_schema`."""

import io

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from jobs.services import access
from kernel import Kernel


def run(*arguments: str) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output)
    return output.getvalue().strip()


def test_a_token_is_printed_alone_and_works(transactional_db: None) -> None:
    User.objects.create_user("ada")
    raw = run("create_token", "ada", "--tenant", "acme", "--days", "7")
    token = access.authenticate(raw)
    assert token is not None
    assert (token.user.username, token.tenant) == ("ada", "acme")
    assert token.expires_at is not None


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["nobody", "--tenant", "acme"], 3),
        (["ada", "--tenant", "Not A Slug"], 2),
        # Django's own parser raises 1 where a shell sees 2.
        (["ada", "--tenant", "acme", "--days", "-1"], 1),
        (["ada", "--tenant", "acme", "--days", "0"], 2),
        (["ada", "--tenant", "acme", "--days", "999999999"], 2),
    ],
)
def test_a_wrong_call_says_why(transactional_db: None, arguments: list[str], status: int) -> None:
    User.objects.create_user("ada")
    with pytest.raises(CommandError) as refused:
        run("create_token", *arguments)
    assert refused.value.returncode == status


def test_the_schema_can_be_made_any_number_of_times(kernel: Kernel) -> None:
    assert run("ensure_schema") == run("ensure_schema") == "The workflow store is ready."
