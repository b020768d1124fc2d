"""A worker process for tests that kill it: serves one queue of the test's database, then ends.

    python -m tests.speech.worker QUEUE [--speech URL] [--die-after-submit]

Guarantees: the definitions are the product's own; with `--die-after-submit` the process kills
itself when the provider has answered and nothing of it is stored yet.
"""

import argparse
import os
import signal
from dataclasses import dataclass
from typing import Any

import django


@dataclass(frozen=True, slots=True, kw_only=True)
class DyingProvider:
    """The real provider, in a process that does not survive a submission."""

    provider: Any

    def submit(self, audio: bytes, **options: Any) -> Any:
        self.provider.submit(audio, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    def query(self, task_id: str, **options: Any) -> Any:
        return self.provider.query(task_id, **options)


def main() -> None:
    """Serve the queue until nothing is due."""
    parser = argparse.ArgumentParser()
    parser.add_argument("queue")
    parser.add_argument("--speech", default="http://127.0.0.1:1")
    parser.add_argument("--die-after-submit", action="store_true")
    options = parser.parse_args()
    django.setup()
    from jobs.activities.outside import ports_from_settings
    from jobs.ports import SpeechDesk
    from jobs.runtime import get_kernel
    from jobs.speech import ServiceClient
    from jobs.workflows.audio import audio_definition
    from jobs.workflows.fanout import fanout_definition
    from jobs.workflows.watch import watch_definition

    provider: Any = ServiceClient(base_url=options.speech)
    if options.die_after_submit:
        provider = DyingProvider(provider=provider)
    base = ports_from_settings()
    ports = type(base)(
        pages=base.pages,
        composer=base.composer,
        recordings=base.recordings,
        speech=SpeechDesk(providers={"service": provider}, default="service"),
    )
    kernel = get_kernel()
    kernel.register(audio_definition(ports))
    kernel.register(watch_definition())
    kernel.register(fanout_definition())
    kernel.drain([options.queue])


if __name__ == "__main__":
    main()
