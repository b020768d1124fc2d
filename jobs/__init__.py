"""The reference business: content jobs, and the parts a team takes over for its own.

Guarantees: a request's business object and its intent to run are one write (`jobs.dispatch`), and
business rows change through `jobs.services` only. Leaves to others: execution (`kernel`), settings
and processes (`config`), the operator's pages (`ops_console`). Design 3 and 7.
"""
