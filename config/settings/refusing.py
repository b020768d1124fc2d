"""A bad environment stops a process with a sentence, whichever process it is.

Guarantees: one line on standard error and exit status 2 (wrong usage), in place of a traceback
through whoever imported the settings. Leaves to others: the sentence (``env``, ``databases``).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured


@contextmanager
def stop_with_a_sentence() -> Iterator[None]:
    """End the process where the environment cannot be used. Raises: SystemExit."""
    try:
        yield
    except ImproperlyConfigured as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
