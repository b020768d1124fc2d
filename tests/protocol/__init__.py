"""The protocol of design 1 on a real MongoDB and Redis: every transition, race and refusal."""
