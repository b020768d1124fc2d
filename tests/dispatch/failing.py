"""Definitions of `content.article` that end at once, one way or another."""

from typing import Any

from jobs.plans import ARTICLE
from kernel import ActivityContext, Definition, Kernel, NonRetryable, Step


def register_refusing_article(kernel: Kernel) -> None:
    """Serve the plan by activities that fail for good, without touching business rows."""
    kernel.register(_definition(_refuse))


def register_empty_article(kernel: Kernel) -> None:
    """Serve the plan by activities that do nothing and succeed."""
    kernel.register(_definition(_succeed))


def _definition(activity: Any) -> Definition:
    return Definition(ARTICLE, steps={name: Step(activity, timeout=5) for name in ARTICLE.steps})


def _refuse(_: ActivityContext) -> dict[str, Any]:
    raise NonRetryable("refused on purpose", code="refused")


def _succeed(_: ActivityContext) -> dict[str, Any]:
    return {}
