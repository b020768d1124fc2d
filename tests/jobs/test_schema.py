"""Models and migrations agree, and publishers stay free of activity code."""

import subprocess
import sys

import pytest
from django.core.management import call_command


@pytest.mark.django_db
def test_migrations_are_in_step_with_the_models() -> None:
    call_command("makemigrations", "jobs", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize("module", ["jobs.api.views", "jobs.runtime", "config.celery"])
def test_publishers_import_no_activity_code(module: str) -> None:
    script = (
        "import os, sys, django\n"
        "os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'config.settings')\n"
        "django.setup()\n"
        f"import {module}\n"
        "found = [m for m in sys.modules if m.startswith(('jobs.activities', 'jobs.workflows'))]\n"
        "sys.exit(', '.join(found) or 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
