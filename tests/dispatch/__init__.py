"""The dispatch intent: states, guards, request path and recovery, on real databases."""
