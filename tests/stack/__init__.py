"""The dev stack: its supervisor, its commands, its production-like twin."""
