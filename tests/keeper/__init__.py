"""The keeper beside real processes, on a real store."""
