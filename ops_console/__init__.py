"""The ops console: a Django-admin site of its own at ``/ops/``.

Guarantees: it changes nothing except through the services of ``jobs`` and the public face of
``kernel``. Leaves to others: what those services allow.
"""
