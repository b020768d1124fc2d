"""The kernel's pure parts: definitions, values and decisions, without any server."""
