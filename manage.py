#!/usr/bin/env python
"""Django's command line for this project: `manage.py up`, `workflows`, `migrate` and the rest.

Guarantees the project's settings unless DJANGO_SETTINGS_MODULE names others. Leaves every command
to its app.
"""

import os
import sys


def main() -> None:
    """Run the command named on the command line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.stderr.write(
            "manage.py: Django is not installed in this Python; run `make setup` once and use"
            " .venv/bin/python\n"
        )
        # "Wrong usage" of every command; 1 would be an answer of `verify` and others.
        sys.exit(2)

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
