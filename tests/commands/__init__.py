"""Management commands: output, exit status, names they accept."""
