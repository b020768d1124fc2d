"""Speech recognition: the service as a process, its clients, and the workflow that follows it."""
