"""Baton in a few short chapters: one idea a test, public API only, read from top to bottom.

Order: starting, failing, rounds, waiting, waves, ending, takeover.
"""
