"""What the test tiers share: servers of the run, waiting for conditions, child processes.

Guarantees nothing here replaces a part of the product: servers and processes are real.
Leaves each tier's own fixtures to that tier's conftest.
"""
