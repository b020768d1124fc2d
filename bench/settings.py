"""The project's own settings with the measured workflows installed as one more app."""

from config.settings import *  # noqa: F403 - these are the project's settings, plus one app
from config.settings import INSTALLED_APPS as _PROJECT_APPS

INSTALLED_APPS = [*_PROJECT_APPS, "bench"]
