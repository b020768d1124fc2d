"""Management commands: what the console can do, from a terminal."""
