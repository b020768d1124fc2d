"""Structured logs: one JSON object a line on standard error.

Guarantees: lines of Django, Celery, uvicorn and our own loggers have the same shape; what a caller
binds (request_id, workflow_id, step) is in each line.
Leaves to others: shipping and keeping the lines.
"""

import logging
from typing import Any

import structlog
from structlog.typing import Processor

_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


class _ClientsFault(logging.Filter):
    """Leaves out the stack of a request Django refused: anybody can send a thousand of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Let every record pass."""
        if record.name.startswith("django.security."):
            record.exc_info = record.exc_text = None
        return True


def logging_settings(*, level: str, output: str) -> dict[str, Any]:
    """Build Django's LOGGING; ``output`` is ``json`` or ``text`` (for people at a terminal)."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": _SHARED,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *_renderers(output),
                ],
            }
        },
        "filters": {"clients_fault": {"()": _ClientsFault}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "structured",
                "filters": ["clients_fault"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            # Drivers and transports are chatty at INFO; their warnings matter.
            "pymongo": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            # A tick a second would drown everything else.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
        },
    }


def configure_structlog() -> None:
    """Send structlog's loggers through the standard library. On repeat: nothing changes."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )


def _renderers(output: str) -> list[Processor]:
    if output == "text":
        return [structlog.dev.ConsoleRenderer(colors=False)]
    return [
        structlog.processors.format_exc_info,
        structlog.processors.JSONRenderer(ensure_ascii=True, default=repr),
    ]
