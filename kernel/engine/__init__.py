"""Runs claims; decides nothing that `kernel.protocol` can decide (design 1.5).

`drain` finds candidates and takes claims, `claims` holds one, `committing` writes until there is an
answer, `running` is the loop of one claim, `wave` lets its steps run and come home, `invoke` is the
only door into activity code, `finalize` the reliable end, `heartbeat` keeps leases alive.
"""
