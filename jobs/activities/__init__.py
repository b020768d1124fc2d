"""The activities of the reference workflows: what each step does, and nothing about when.

Guarantees: only workers import this package. Each activity may be called again with the same round
and finds what it made. Leaves to others: timeouts and retries (`jobs.workflows`), business writes
(`jobs.services.rounds`), the outside world (`jobs.ports`).
"""
