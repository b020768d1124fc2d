"""Real Celery workers on real brokers."""
