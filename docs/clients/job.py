"""Submit an article, wait for its end and print its summary. Needs httpx.

    BATON_URL=http://127.0.0.1:8000 BATON_TOKEN=baton_… python job.py https://example.org/ [KEY]

Run it again with the same KEY after any failure: the job is made once.
"""

import os
import sys
import time
import uuid

import httpx

TRIES = 6
MAY_SUCCEED_LATER = {409, 429, 502, 503, 504}


def call(client: httpx.Client, method: str, url: str, **options: object) -> httpx.Response:
    """Make a call; repeat it while its problem says that this may help."""
    for attempt in range(TRIES):
        last = attempt == TRIES - 1
        try:
            answer = client.request(method, url, **options)  # type: ignore[arg-type]
        except httpx.TransportError as error:
            if last:
                sys.exit(f"{client.base_url} does not answer: {error}")
            time.sleep(2**attempt / 10)
            continue
        if answer.is_success:
            return answer
        problem = answer.json()
        if last or not (answer.status_code in MAY_SUCCEED_LATER and problem["retryable"]):
            sys.exit(f"{problem['type']}: {problem['detail']} ({problem['request_id']})")
        time.sleep(float(answer.headers.get("Retry-After", 1)))
    raise AssertionError


def main(source_url: str, key: str) -> None:
    """Submit, wait, print."""
    headers = {"Authorization": f"Bearer {os.environ['BATON_TOKEN']}"}
    with httpx.Client(base_url=os.environ["BATON_URL"], headers=headers, timeout=60) as client:
        accepted = call(
            client,
            "POST",
            "/api/v1/jobs",
            json={"kind": "article", "source_url": source_url},
            headers={"Idempotency-Key": f'"{key}"'},
        )
        address = accepted.headers["Location"]
        while True:
            job = call(client, "GET", address, headers={"Prefer": "wait=20"}).json()
            if job["status"] == "ready":
                print(job["result"]["summary"])
                return
            if job["status"] in {"failed", "canceled"}:
                sys.exit(f"{job['status']}: {job['error']}")


if __name__ == "__main__":
    if len(sys.argv) < 2 or not {"BATON_URL", "BATON_TOKEN"} <= os.environ.keys():
        sys.exit("usage: BATON_URL=… BATON_TOKEN=… python job.py SOURCE_URL [KEY]")
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else str(uuid.uuid4()))
