"""The product's settings, with the workflows of the soak beside its own."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as _INSTALLED_APPS

INSTALLED_APPS = [*_INSTALLED_APPS, "tests.chaos.business"]
