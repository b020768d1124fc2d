"""The only writers of business rows.

Guarantees: every write of a business row is one function here, guarded by what it believes.
Leaves to others: HTTP (`jobs.api`), pages (`ops_console`), execution (`kernel`), and the intent's
own protocol (`jobs.dispatch`).
"""
