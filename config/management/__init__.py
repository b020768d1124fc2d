"""The project's own management commands."""
