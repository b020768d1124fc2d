"""A small client of the jobs API, as a front end would write it.

Guarantees that an unexpected answer ends the demonstration with the problem's own words.
Leaves the API to `jobs.api`.
"""

from typing import Any, Self

import httpx

from config.stack.demo.checks import DemoFailed

_TIMEOUT = 10.0

Json = dict[str, Any]


class JobsClient:
    """Talks to one API with one token."""

    def __init__(self, base_url: str, token: str) -> None:
        self._http = httpx.Client(
            base_url=base_url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT,
            # The demonstration talks to this machine only, whatever proxy is configured.
            trust_env=False,
        )

    def submit(self, source_url: str, *, metadata: Json) -> Json:
        """Ask for an article's summary; returns the job as accepted. Raises: DemoFailed."""
        return self.order({"kind": "article", "source_url": source_url, "metadata": metadata})

    def order(self, order: Json) -> Json:
        """Ask for any job; returns it as accepted. Raises: DemoFailed."""
        return self._ask("POST", "/api/v1/jobs", expected=202, json=order)

    def job(self, job_id: str) -> Json:
        """Return the job as it is now. Raises: DemoFailed."""
        return self._ask("GET", f"/api/v1/jobs/{job_id}", expected=200)

    def choice(self, job_id: str) -> Json | None:
        """Return what a job asks its user, or None while it asks nothing. Raises: DemoFailed."""
        answer = self._http.get(f"/api/v1/jobs/{job_id}/choice")
        body: Json = answer.json()
        return body if answer.status_code == 200 else None

    def choose(self, job_id: str, option: str) -> Json:
        """Take one of a job's candidates. Raises: DemoFailed."""
        path = f"/api/v1/jobs/{job_id}/choose"
        return self._ask("POST", path, expected=202, json={"option": option})

    def announce(self, title: str) -> Json:
        """Announce a live event. Raises: DemoFailed."""
        return self._ask("POST", "/api/v1/live-events", expected=201, json={"title": title})

    def end(self, event_id: str, recording_url: str) -> Json:
        """End a live event with its recording. Raises: DemoFailed."""
        path = f"/api/v1/live-events/{event_id}/end"
        return self._ask("POST", path, expected=200, json={"recording_url": recording_url})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def _ask(self, method: str, path: str, *, expected: int, **options: Any) -> Json:
        try:
            answer = self._http.request(method, path, **options)
        except httpx.HTTPError as problem:
            raise DemoFailed(f"{method} {path}: {problem!r}") from problem
        if answer.status_code != expected:
            raise DemoFailed(f"{method} {path} answered {answer.status_code}: {answer.text[:500]}")
        body: Json = answer.json()
        return body
