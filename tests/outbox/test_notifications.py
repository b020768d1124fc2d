"""Telling a receiver: signed, once a round, as often as it takes, and never in the job's way."""

import hashlib
import hmac
import json
import re
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from pytest_django import Settings

from jobs.models import ContentJob, Notification
from jobs.notifying import WebhookSender, tenant_secrets
from jobs.notifying.signing import sign
from jobs.ports import PortCancelled
from jobs.ports.notification import NotifyFailedForNow, NotifyRefused
from jobs.services import content, notifications, rounds
from jobs.services.errors import InvalidRequest, JobNotFound, NotRetryable
from kernel import Kernel
from kernel.testing import TimeShift
from tests.dispatch.rows import force, state, stored
from tests.jobs.site import Site
from tests.kit.processes import ROOT
from tests.outbox.conftest import KEY

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def local_receivers(settings: Settings) -> None:
    settings.BATON_FETCH_ALLOW_PRIVATE = True


def submit(site: Site, path: str = "/tides", **options: Any) -> ContentJob:
    return content.submit_job(
        tenant="acme",
        kind="article",
        source_url=site.url + path,
        options={"notify_url": f"{site.url}/hook", **options},
        metadata={"order": 42, "ünï": None},
    )


def run(kernel: Kernel) -> None:
    kernel.drain(queues=["content"])


def told(job: ContentJob) -> Notification:
    return Notification.objects.get(job=job)


def documented() -> dict[str, Any]:
    """Run the receiver's code of docs/webhooks.md and return its names."""
    text = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, "docs/webhooks.md", "exec"), names)
    return names


class TestJourney:
    def test_ready_job_is_announced_once_with_a_signature_that_checks(
        self, notifying: Kernel, site: Site
    ) -> None:
        job = submit(site)
        run(notifying)
        ((path, headers, body),) = site.posted
        (secret,) = tenant_secrets("acme", [KEY])
        assert path == "/hook"
        assert documented()["is_genuine"](secret, headers, body)
        message = json.loads(body)
        assert message["type"] == "job.ready"
        assert message["id"] == headers["Baton-Webhook-Id"] == told(job).pk
        assert message["job"]["id"] == job.pk
        assert message["job"]["metadata"] == {"order": 42, "ünï": None}
        assert message["job"]["error"] is None
        row = told(job)
        assert (row.status, row.answer, row.dispatch_status) == ("delivered", 204, "dispatched")
        assert state(job) == ("ready", "dispatched", 1)
        assert "notify_url" not in stored(job).dispatch_input["input"]

    def test_failed_job_is_announced_with_its_reason_and_each_round_anew(
        self, notifying: Kernel, site: Site
    ) -> None:
        from tests.jobs.site import ARTICLE_HTML

        job = submit(site, "/later")
        run(notifying)
        site.pages["/later"] = (200, ARTICLE_HTML)
        content.retry_job("acme", job.pk)
        run(notifying)
        messages = [json.loads(body) for _, _, body in site.posted]
        assert [message["type"] for message in messages] == ["job.failed", "job.ready"]
        assert messages[0]["job"]["error"]["code"] == "not_found"
        assert [message["job"]["round"] for message in messages] == [1, 2]
        assert len({message["id"] for message in messages}) == 2

    def test_canceled_job_is_announced_by_the_cancel(self, notifying: Kernel, site: Site) -> None:
        job = submit(site)
        content.cancel_job("acme", job.pk)
        content.cancel_job("acme", job.pk)
        run(notifying)
        assert [json.loads(body)["type"] for _, _, body in site.posted] == ["job.canceled"]

    def test_job_without_an_address_announces_nothing(self, notifying: Kernel, site: Site) -> None:
        content.submit_job(tenant="acme", kind="article", source_url=f"{site.url}/tides")
        run(notifying)
        assert not Notification.objects.exists()

    def test_rolled_back_end_announces_nothing(self, notifying: Kernel, site: Site) -> None:
        job = submit(site)
        with transaction.atomic():
            rounds.finish_ready(job.pk, 1, title="", result={})
            transaction.set_rollback(True)
        assert not Notification.objects.exists()

    def test_late_finalizer_announces_nothing_more(self, notifying: Kernel, site: Site) -> None:
        job = submit(site)
        rounds.finish_ready(job.pk, 1, title="", result={})
        rounds.finish_ready(job.pk, 1, title="", result={})
        rounds.finish_failed(job.pk, 1, code="late", message="late")
        assert Notification.objects.count() == 1


class TestReceiversInTrouble:
    def test_receiver_that_fails_hears_the_same_bytes_later(
        self, notifying: Kernel, site: Site
    ) -> None:
        site.answers["/hook"] = [500, 302, 404]
        job = submit(site)
        run(notifying)
        assert state(job) == ("ready", "dispatched", 1), "the job does not wait for its receiver"
        assert told(job).status == "waiting"
        for _ in range(3):
            TimeShift(notifying).advance(seconds=60)
            run(notifying)
        assert told(job).status == "delivered"
        assert len({body for _, _, body in site.posted}) == 1
        assert {path for path, _, _ in site.posted} == {"/hook"}, "no redirect is followed"
        assert len(site.posted) == 4

    def test_receiver_that_is_gone_ends_it_and_an_operator_may_try_again(
        self, notifying: Kernel, site: Site
    ) -> None:
        site.answers["/hook"] = [410]
        job = submit(site)
        run(notifying)
        row = told(job)
        assert (row.status, row.error_code) == ("failed", "gone")
        assert state(job) == ("ready", "dispatched", 1)
        notifications.redeliver("acme", row.pk)
        run(notifying)
        assert told(job).status == "delivered"
        assert len({body for _, _, body in site.posted}) == 1
        with pytest.raises(NotRetryable):
            notifications.redeliver("acme", row.pk)
        with pytest.raises(JobNotFound):
            notifications.redeliver("other", row.pk)

    def test_address_that_turns_out_private_is_refused_and_said_so(
        self, serving: Kernel, site: Site
    ) -> None:
        from jobs.activities.notify import NotifyPorts
        from jobs.workflows.notify import notify_definition

        sender = WebhookSender(keys=[KEY], allow_private=False)
        serving.register(notify_definition(NotifyPorts(notifier=sender)))
        job = submit(site)
        run(serving)
        assert (told(job).status, told(job).error_code) == ("failed", "ssrf_refused")
        assert site.posted == []

    def test_notification_that_is_over_is_not_sent_again(
        self, notifying: Kernel, site: Site
    ) -> None:
        job = submit(site)
        rounds.finish_ready(job.pk, 1, title="", result={})
        Notification._base_manager.filter(job=job).update(status="canceled")
        run(notifying)
        assert site.posted == []


class TestSender:
    def send(self, url: str, **options: Any) -> int:
        sender = WebhookSender(keys=[KEY], allow_private=True, timeout=1, **options)
        return sender.send(url, b"{}", message_id="ntf_1", tenant="acme")

    @pytest.mark.parametrize(
        ("status", "code"), [(500, "server_error"), (429, "not_taken"), (301, "not_taken")]
    )
    def test_other_answers_are_tried_again(self, status: int, code: str, site: Site) -> None:
        site.answers["/hook"] = [status]
        with pytest.raises(NotifyFailedForNow, match=str(status)) as caught:
            self.send(f"{site.url}/hook")
        assert caught.value.code == code

    def test_receiver_that_does_not_listen_is_tried_again(self) -> None:
        with pytest.raises(NotifyFailedForNow) as caught:
            self.send("http://127.0.0.1:9/hook".replace(":9/", ":50999/"))
        assert caught.value.code == "connection_failed"

    def test_name_that_leads_nowhere_is_tried_again(self) -> None:
        import socket

        def nowhere(host: str, port: int) -> list[str]:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")

        with pytest.raises(NotifyFailedForNow) as caught:
            self.send("http://receiver.example/hook", resolver=nowhere)
        assert caught.value.code == "unknown_host"

    @pytest.mark.parametrize(
        ("url", "code"),
        [("ftp://receiver.example/", "ssrf_refused"), ("http://", "bad_url"), ("", "bad_url")],
    )
    def test_unusable_address_is_final(self, url: str, code: str) -> None:
        with pytest.raises(NotifyRefused) as caught:
            self.send(url)
        assert caught.value.code == code

    def test_stop_sign_ends_the_call(self, site: Site) -> None:
        import threading

        stopped = threading.Event()
        stopped.set()
        sender = WebhookSender(keys=[KEY], allow_private=True)
        with pytest.raises(PortCancelled):
            sender.send(f"{site.url}/hook", b"{}", message_id="n", tenant="acme", cancelled=stopped)
        assert site.posted == []


class TestSignature:
    def test_secret_is_the_tenant_s_own_and_stays_the_same(self) -> None:
        (one,) = tenant_secrets("acme", [KEY])
        assert tenant_secrets("acme", [KEY]) == [one]
        assert one.startswith("whsec_")
        assert len(one) == len("whsec_") + 64
        assert one not in {*tenant_secrets("other", [KEY]), *tenant_secrets("acme", [KEY + "x"])}

    def test_derivation_is_hkdf_as_the_standard_writes_it(self) -> None:
        extracted = hmac.new(b"baton", KEY.encode(), hashlib.sha256).digest()
        info = b"baton webhook v1:acme"
        block = hmac.new(extracted, info + b"\x01", hashlib.sha256).hexdigest()
        assert tenant_secrets("acme", [KEY]) == [f"whsec_{block}"]

    def test_receiver_with_the_older_secret_still_accepts(self) -> None:
        body, now = b'{"a": 1}', int(time.time())
        new, old = tenant_secrets("acme", [KEY, "the key before"])
        headers = {
            "Baton-Webhook-Timestamp": str(now),
            "Baton-Webhook-Signature": sign(body, timestamp=now, secrets=[new, old]),
        }
        is_genuine = documented()["is_genuine"]
        assert is_genuine(new, headers, body)
        assert is_genuine(old, headers, body)

    @pytest.mark.parametrize(
        "change",
        [
            {"body": b'{"a": 2}'},
            {"secret": "whsec_other"},
            {"timestamp": "1"},
            {"timestamp": ""},
            {"timestamp": "-5"},
            {"signature": ""},
            {"signature": "v1="},
            {"signature": "v1=ü"},
        ],
    )
    def test_receiver_of_the_documents_refuses_forgeries(self, change: dict[str, Any]) -> None:
        now = int(time.time())
        (secret,) = tenant_secrets("acme", [KEY])
        genuine = {
            "secret": secret,
            "body": b'{"a": 1}',
            "timestamp": str(now),
            "signature": sign(b'{"a": 1}', timestamp=now, secrets=[secret]),
        }
        offered = genuine | change
        headers = {
            "Baton-Webhook-Timestamp": offered["timestamp"],
            "Baton-Webhook-Signature": offered["signature"],
        }
        assert not documented()["is_genuine"](offered["secret"], headers, offered["body"])

    def test_command_shows_the_secret_the_sender_uses(self, settings: Settings) -> None:
        settings.SECRET_KEY = KEY
        out = StringIO()
        call_command("webhook_secret", "acme", stdout=out)
        assert [out.getvalue().strip()] == tenant_secrets("acme", [KEY])
        with pytest.raises(CommandError, match="slug"):
            call_command("webhook_secret", "No Tenant")


class TestEntry:
    @pytest.mark.parametrize(
        "url",
        [
            "",
            42,
            None,
            "ftp://example.org/",
            "https://user:secret@example.org/",
            "http://169.254.169.254/latest",
            "http://[::1]/",
            "http://2130706433/",
            "http://localhost/",
            "http://example.org:25/",
            "http://example.org/\x00",
            "http://example.org/ a",
            "https://example.org/" + "a" * 3000,
        ],
    )
    def test_address_that_cannot_be_used_is_refused_at_the_door(
        self, url: Any, settings: Settings
    ) -> None:
        settings.BATON_FETCH_ALLOW_PRIVATE = False
        with pytest.raises(InvalidRequest) as caught:
            content.submit_job(
                tenant="acme",
                kind="article",
                source_url="https://example.org/",
                options={"notify_url": url},
            )
        assert [problem.pointer for problem in caught.value.problems] == ["/options/notify_url"]
        assert "secret" not in str(caught.value)

    def test_list_of_a_job_is_its_tenant_s_own(self, kernel: Kernel, site: Site) -> None:
        job = submit(site)
        force(job, status="initial")
        rounds.finish_failed(job.pk, 1, code="x", message="y")
        assert [row.status for row in notifications.list_of_job("acme", job.pk)] == ["waiting"]
        assert notifications.list_of_job("other", job.pk) == []


def test_documented_schedule_is_the_step_s() -> None:
    from jobs.workflows.notify import ATTEMPTS

    text = (Path(ROOT) / "docs" / "webhooks.md").read_text(encoding="utf-8")
    assert ATTEMPTS.max_retry + 1 == 15
    assert "fifteen attempts" in text
