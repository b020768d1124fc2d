"""The demonstration behind `make demo`: real jobs on the real stack, and a worker killed mid-step.

```
act 1: shipped article pages ─POST─▶ API ─▶ workers ─▶ summaries, with the timeline of each
act 2: a page that does not answer ─▶ SIGKILL the worker that waits for it ─▶ another one finishes
       proof: completed steps kept their attempt, their time and their transition number
act 3: a recording is submitted ─▶ SIGKILL the worker that did ─▶ another one asks for the same task
act 4: jobs wait for a live event ─▶ it ends ─▶ fan-out wakes them ─▶ one asks its user to choose
```

Guarantees: everything runs in a folder and a database of its own, gone afterwards; a claim made on
the screen was checked first, and the first that does not hold raises `DemoFailed`.
Leaves the stack itself to `config.stack`.
"""

from config.stack.demo.checks import DemoFailed
from config.stack.demo.play import play

__all__ = ["DemoFailed", "play"]
