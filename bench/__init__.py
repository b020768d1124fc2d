"""Benchmarks: what Baton does in a second, beside what the bare servers do in the same run.

Guarantees: real mongod, Redis and Celery worker processes, and truth written with majority and
journal as in production. Leaves the method in prose, and the figures, to `docs/benchmarks.md`.
"""
