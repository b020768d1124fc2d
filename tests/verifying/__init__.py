"""What `manage.py verify` finds, what it leaves alone, and that it changes nothing."""
