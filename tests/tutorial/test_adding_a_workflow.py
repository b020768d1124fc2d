"""The page `docs/adding-a-workflow.md`, executed: its code becomes an app that a worker runs."""

import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.processes import ROOT, Child
from tests.kit.waiting import eventually

PAGE = ROOT / "docs" / "adding-a-workflow.md"
USER_LINES_MAX = 60
SETTINGS = "from config.settings import *\nINSTALLED_APPS += ['orders']\n"
PREPARE = """
from django.core.management import call_command
call_command("makemigrations", "orders")
call_command("migrate", verbosity=0)
call_command("ensure_schema")
call_command("check", fail_level="WARNING")
"""
PLACE = """
from jobs.dispatch import install
from orders.models import Order
order = Order(cents=300)
install(order)
"""


def files_of_page() -> dict[str, str]:
    """Return the page's code blocks that name a file in their first line, by that name."""
    blocks = re.findall(
        r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    named = (re.match(r"# (orders/\w+\.py)\n", block) for block in blocks)
    return {name[1]: block for name, block in zip(named, blocks, strict=True) if name is not None}


@pytest.fixture
def project(tmp_path: Path, child_env: dict[str, str]) -> dict[str, str]:
    """Lay the page's app out in a folder; return the environment of a project that installs it."""
    for name, text in {"orders/__init__.py": "", **files_of_page()}.items():
        target = tmp_path / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    (tmp_path / "shop_settings.py").write_text(SETTINGS, encoding="utf-8")
    return {
        **child_env,
        "BATON_DATA_DIR": str(tmp_path / "data"),
        "DJANGO_SETTINGS_MODULE": "shop_settings",
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def manage(project: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, **project},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def migrated(project: dict[str, str]) -> None:
    """Do what the page says to do once: in one process, as each costs the start of Django."""
    manage(project, "shell", "--no-imports", "-c", PREPARE)


def test_a_workflow_takes_less_than_sixty_lines_of_the_teams_own() -> None:
    counted = {
        name: sum(1 for line in text.splitlines()[1:] if line.strip())
        for name, text in files_of_page().items()
        if name != "orders/tests.py"
    }
    assert set(counted) == {
        f"orders/{module}.py" for module in ("plans", "models", "activities", "workflows")
    }
    assert sum(counted.values()) < USER_LINES_MAX, counted


def test_the_pages_own_tests_pass(project: dict[str, str]) -> None:
    migrated(project)
    assert "Ran 2 tests" in manage(project, "test", "orders")


def test_a_celery_worker_carries_an_order_to_its_end(
    project: dict[str, str], tmp_path: Path
) -> None:
    migrated(project)
    worker = [sys.executable, "-m", "celery", "-A", "config", "worker", "-Q", "orders", "-c", "1"]
    with Child([*worker, "--without-gossip", "--without-mingle"], env=project) as running:
        running.wait_for_line(r"ready\.", timeout=60)
        manage(project, "shell", "--no-imports", "-c", PLACE)
        database = sqlite3.connect(tmp_path / "data" / "business.sqlite3")
        try:
            eventually(
                lambda: (
                    database.execute(
                        "SELECT status, (SELECT count(*) FROM orders_payment) FROM orders_order"
                    ).fetchall()
                    == [("shipped", 1)]
                ),
                timeout=60,
                message="the order did not get shipped",
            )
        finally:
            database.close()
    assert "order.fulfil" in manage(project, "workflows", "list")
