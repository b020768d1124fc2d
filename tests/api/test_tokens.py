"""Rotation of tokens: users move from the old one to the new one without a gap."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone

from jobs.models import ApiToken
from jobs.services import access
from jobs.services.errors import TokenReplaced
from tests.api.callers import Caller, slug_of


def with_token(who: Caller, token: str) -> Caller:
    return Caller(tenant=who.tenant, user=who.user, token=token)


def test_both_tokens_work_until_the_overlap_is_over(acme: Caller) -> None:
    answer = acme.post("tokens/rotate")
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    body = answer.json()
    assert (body["tenant"], body["name"], body["expires_at"]) == ("acme", "tests", None)
    renewed = with_token(acme, body["token"])
    assert acme.get("jobs").status_code == renewed.get("jobs").status_code == 200
    ends = ApiToken.objects.get(replaced_by__isnull=False).expires_at
    assert ends is not None
    assert timedelta(hours=23) < ends - timezone.now() <= timedelta(days=1)
    ApiToken.objects.filter(replaced_by__isnull=False).update(expires_at=timezone.now())
    assert acme.get("jobs").status_code == 401
    assert renewed.get("jobs").status_code == 200


def test_an_overlap_of_zero_ends_the_old_token_at_once(acme: Caller) -> None:
    answer = acme.post("tokens/rotate", {"overlap_seconds": 0})
    assert answer.status_code == 201
    assert acme.get("jobs").status_code == 401
    assert with_token(acme, answer.json()["token"]).get("jobs").status_code == 200


def test_a_new_token_lives_as_long_as_the_old_one_was_meant_to(acme: Caller) -> None:
    made = timezone.now() - timedelta(days=20)
    ApiToken.objects.update(created_at=made, expires_at=made + timedelta(days=20, minutes=5))
    issued = access.rotate_token(ApiToken.objects.get())
    assert issued.token.expires_at is not None
    life = issued.token.expires_at - timezone.now()
    assert timedelta(days=20) < life <= timedelta(days=20, minutes=5)
    old = ApiToken.objects.get(replaced_by=issued.token)
    # A rotation never prolongs the old token.
    assert old.expires_at == made + timedelta(days=20, minutes=5)


def test_a_lost_answer_is_repaired_by_asking_again(acme: Caller) -> None:
    lost = acme.post("tokens/rotate").json()["token"]
    found = acme.post("tokens/rotate").json()["token"]
    assert with_token(acme, lost).get("jobs").status_code == 401
    assert with_token(acme, found).get("jobs").status_code == 200
    assert slug_of(acme.post("tokens/rotate")) == "token-replaced"
    assert with_token(acme, found).get("jobs").status_code == 200


@pytest.mark.parametrize("life", [None, timedelta(days=90)])
def test_a_token_rotated_again_for_a_lost_answer_lives_as_long_as_the_first_was_meant_to(
    acme: Caller, life: timedelta | None
) -> None:
    made = timezone.now()
    ApiToken.objects.update(created_at=made, expires_at=None if life is None else made + life)
    old = ApiToken.objects.get().pk
    for _ in range(3):
        issued = access.rotate_token(ApiToken.objects.get(pk=old))
    ends = issued.token.expires_at
    if life is None:
        assert ends is None
    else:
        assert ends is not None
        assert abs(ends - timezone.now() - life) < timedelta(minutes=1)


def test_racing_rotations_leave_one_successor(acme: Caller) -> None:
    token = ApiToken.objects.get()

    def rotate(_: int) -> bool:
        try:
            access.rotate_token(ApiToken.objects.get(pk=token.pk))
        except TokenReplaced:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert any(pool.map(rotate, range(8)))
    live = ApiToken.objects.filter(revoked_at=None).exclude(pk=token.pk)
    assert [found.pk for found in live] == [ApiToken.objects.get(pk=token.pk).replaced_by_id]


def test_a_revoked_token_is_not_rotated(acme: Caller) -> None:
    token = ApiToken.objects.get()
    access.revoke_token(token.pk)
    with pytest.raises(TokenReplaced):
        access.rotate_token(token)
    assert ApiToken.objects.count() == 1


@pytest.mark.parametrize("seconds", [-1, 31 * 86_400, "60", 1.5, None, 10**12])
def test_an_overlap_that_means_nothing_is_refused(acme: Caller, seconds: object) -> None:
    answer = acme.post("tokens/rotate", {"overlap_seconds": seconds})
    assert slug_of(answer) == "validation"
    assert ApiToken.objects.count() == 1


def test_a_session_has_no_token_to_rotate(acme: Caller) -> None:
    browser = Client()
    browser.force_login(acme.user)
    assert browser.post("/api/v1/tokens/rotate", {}, "application/json").status_code == 403


def test_a_token_is_rotated_from_the_command_line(acme: Caller) -> None:
    token = ApiToken.objects.get()
    output = StringIO()
    call_command("rotate_token", str(token.pk), "--overlap-hours", "2", stdout=output)
    assert with_token(acme, output.getvalue().strip()).get("jobs").status_code == 200
    for arguments in (["0"], [str(token.pk)], [str(token.pk), "--overlap-hours", "9999999999"]):
        with pytest.raises(CommandError):
            call_command("rotate_token", *arguments, stdout=output)
