"""Real Celery workers that are killed, hung, stopped and cut off."""
