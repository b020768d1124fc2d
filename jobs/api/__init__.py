"""The REST API at ``/api/v1/``: ask for work, follow it, retry it, cancel it.

Guarantees: every answer carries a ``Request-Id``, every refusal is problem+json (RFC 9457) with a
stable ``type``, another tenant's things do not exist, and a 202 follows from a committed write
only. Leaves to others: what may happen to a job (``jobs.services``) and running it (workers).
Importing this package loads no activity code. Design 6.3.
"""
