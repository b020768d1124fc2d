"""kernel.hints on a real Redis: alive, empty, restarted, hung, full, read-only, in a cluster."""
