"""Moments to the second and in UTC, as in the API and the commands.

Guarantees: a moment seen on the console can be searched for in logs and answers. Leaves the rest to
Django's own formats.
"""

DATETIME_FORMAT = r"Y-m-d H:i:s\Z"
