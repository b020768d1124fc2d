"""The outbox in depth: starting over, deleting, adopting, telling, callers' blocks, outages."""
