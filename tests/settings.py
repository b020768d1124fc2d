"""The project's settings for a test run: whatever is written lies in the run's folder.

Guarantees that a test run leaves nothing in the repository, not even a generated secret. Leaves
every value to `config.settings`; children of a test read that module too, from the environment.
"""

import os

from tests.kit import servers

# pytest-django reads settings before any conftest, so the folder is named here.
servers.lead_run()
os.environ.setdefault("BATON_DATA_DIR", str(servers.run_dir() / "data"))

from config.settings import *  # noqa: E402, F403 -- the environment comes first
