"""Waiting business: live events and their fan-out, choices, callbacks."""
