"""A choice left to the user: offered, raced for, repeated, and what is refused."""

import threading
from typing import Any

import pytest
from django.db import connections

from jobs.models import ArtifactKind, ContentJob, JobChoice
from jobs.services import choices, content, recordings, rounds
from jobs.services.errors import ChoiceMade, ChoiceNotOpen, UnknownOption
from kernel import Kernel
from kernel.testing import run_until_idle
from tests.api.callers import Caller, caller, slug_of
from tests.jobs.conftest import site
from tests.jobs.site import Site
from tests.live.turns import MEDIA, instance_of, pass_time

__all__ = ["site"]

pytestmark = pytest.mark.django_db(transaction=True)


def asking(kernel: Kernel, site: Site) -> ContentJob:
    """Bring a digest job to its question; its recording was transcribed before."""
    job = content.submit_job(
        tenant="acme",
        kind="digest",
        source_url=site.url + "/tides",
        options={"audio_url": site.url + "/unused.wav", "max_sentences": 4},
    )
    recordings.keep_transcript(
        job.pk,
        1,
        text="A mill is turned by the sea.",
        details={"provider": "service", "task_id": "t", "final_url": "", "language": None},
    )
    run_until_idle(kernel, MEDIA)
    assert instance_of(kernel, job).steps["choose"].status == "waiting"
    return job


def test_the_candidate_that_was_chosen_is_published(serving: Kernel, site: Site) -> None:
    job = asking(serving, site)
    choice = choices.find_choice("acme", job.pk)
    assert choice is not None
    offered = {candidate["option"]: candidate for candidate in choice.candidates}
    assert list(offered) == ["brief", "full"]
    assert len(offered["brief"]["sentences"]) == 2
    assert len(offered["full"]["sentences"]) == 4
    choices.choose("acme", job.pk, "brief")
    run_until_idle(serving, MEDIA)
    job.refresh_from_db()
    assert job.status == "ready"
    assert job.result["option"] == "brief"
    assert job.result["summary"] == offered["brief"]["summary"]
    assert job.result["sentences"] == offered["brief"]["sentences"]
    assert job.result["transcript"] == "A mill is turned by the sea."
    assert instance_of(serving, job).steps["choose"].attempt == 1


def test_the_same_option_again_is_the_same_and_another_is_refused(
    serving: Kernel, site: Site
) -> None:
    job = asking(serving, site)
    for _ in range(2):
        assert choices.choose("acme", job.pk, "full").pk == job.pk
    with pytest.raises(ChoiceMade) as made:
        choices.choose("acme", job.pk, "brief")
    assert made.value.option == "full"
    run_until_idle(serving, MEDIA)
    choices.choose("acme", job.pk, "full")
    with pytest.raises(ChoiceMade):
        choices.choose("acme", job.pk, "brief")


def test_of_racing_choices_one_counts(serving: Kernel, site: Site) -> None:
    job = asking(serving, site)
    answers: list[str] = []
    gate = threading.Barrier(8)

    def choose(option: str) -> None:
        gate.wait()
        try:
            choices.choose("acme", job.pk, option)
            answers.append(f"taken {option}")
        except ChoiceMade as made:
            answers.append(f"made {made.option}")
        finally:
            connections.close_all()

    threads = [threading.Thread(target=choose, args=(option,)) for option in ("brief", "full") * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = {JobChoice.objects.get(job=job).option}
    assert sorted(answers) == sorted([f"taken {winner}"] * 4 + [f"made {winner}"] * 4)
    run_until_idle(serving, MEDIA)
    job.refresh_from_db()
    assert job.result["option"] == winner


def test_a_choice_whose_ring_was_lost_is_found_by_looking(serving: Kernel, site: Site) -> None:
    job = asking(serving, site)
    JobChoice.objects.filter(job=job).update(option="brief")
    run_until_idle(serving, MEDIA)
    assert instance_of(serving, job).status == "waiting"
    pass_time(serving, 61, MEDIA)
    job.refresh_from_db()
    assert job.status == "ready"


def test_what_is_not_open_or_not_offered_is_refused(serving: Kernel, site: Site) -> None:
    early = content.submit_job(
        tenant="acme",
        kind="digest",
        source_url=site.url + "/tides",
        options={"audio_url": site.url + "/x.wav"},
    )
    with pytest.raises(ChoiceNotOpen):
        choices.choose("acme", early.pk, "brief")
    job = asking(serving, site)
    for option in ("", "BRIEF", "x" * 500, "\x00"):
        with pytest.raises(UnknownOption):
            choices.choose("acme", job.pk, option)
    content.cancel_job("acme", job.pk)
    with pytest.raises(ChoiceNotOpen):
        choices.choose("acme", job.pk, "brief")
    assert JobChoice.objects.get(job=job).option is None


def test_a_new_round_asks_anew(serving: Kernel, site: Site) -> None:
    job = asking(serving, site)
    choices.choose("acme", job.pk, "brief")
    run_until_idle(serving, MEDIA)
    content.regenerate_job("acme", job.pk)
    assert choices.find_choice("acme", job.pk) is None
    with pytest.raises(ChoiceNotOpen):
        choices.choose("acme", job.pk, "full")
    assert rounds.find_artifact(job.pk, 2, kind=ArtifactKind.COMPOSITION) is None


@pytest.fixture
def acme(serving: Kernel) -> Caller:
    """A caller of the tenant `acme`."""
    return caller("acme")


def test_the_api_offers_and_takes_a_choice(acme: Caller, serving: Kernel, site: Site) -> None:
    job = asking(serving, site)
    body: dict[str, Any] = acme.get(f"jobs/{job.pk}/choice").json()
    assert [candidate["option"] for candidate in body["candidates"]] == ["brief", "full"]
    assert body["chosen"] is None
    assert acme.job(job.pk)["links"]["choice"].endswith(f"/jobs/{job.pk}/choice")
    assert slug_of(acme.post(f"jobs/{job.pk}/choose", {"option": "none"})) == "unknown-option"
    assert slug_of(acme.post(f"jobs/{job.pk}/choose", {})) == "validation"
    for _ in range(2):
        answer = acme.post(f"jobs/{job.pk}/choose", {"option": "full"})
        assert (answer.status_code, answer.json()["id"]) == (202, job.pk)
    refused = acme.post(f"jobs/{job.pk}/choose", {"option": "brief"})
    assert slug_of(refused) == "choice-already-made"
    other = caller("globex")
    assert slug_of(other.get(f"jobs/{job.pk}/choice")) == "not-found"
    assert slug_of(other.post(f"jobs/{job.pk}/choose", {"option": "full"})) == "not-found"
    plain = acme.submit()
    assert slug_of(acme.get(f"jobs/{plain['id']}/choice")) == "not-found"
    assert slug_of(acme.post(f"jobs/{plain['id']}/choose", {"option": "full"})) == "choice-not-open"
