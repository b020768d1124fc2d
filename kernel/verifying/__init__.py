"""What must hold of stored facts whenever nobody is writing them (design 1.6), checked read-only.

`finding` is what a check says, `instances`, `signals` and `resources` are the checks, pure
functions from facts to findings, `looking` reads the facts in bounded pages and looks twice before
it says anything. Tests of every tier judge by the same functions.
"""

from __future__ import annotations

from kernel.verifying.finding import Finding
from kernel.verifying.instances import of_instance
from kernel.verifying.looking import Looked, Verifier
from kernel.verifying.resources import of_resource
from kernel.verifying.signals import of_signal

__all__ = ["Finding", "Looked", "Verifier", "of_instance", "of_resource", "of_signal"]
