"""Read every ``BATON_*`` environment variable into one typed, frozen value.

Guarantees: a bad value stops the process at start with a sentence that names the variable and what
to write instead; nothing else in the project reads ``os.environ`` for its configuration. Leaves to
others: turning the values into Django's and Celery's settings (``config.settings``).
"""

import os
import re
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

BASE_DIR = Path(__file__).resolve().parent.parent.parent

_HTTP_SCHEMES = ("http", "https")
_MONGO_SCHEMES = ("mongodb", "mongodb+srv")
_REDIS_SCHEMES = ("redis", "rediss")
_BROKER_SCHEMES = ("redis", "rediss", "amqp", "amqps", "pyamqp")
_DATABASE_SCHEMES = ("sqlite", "postgres", "postgresql")


#: Where `make up` says, in its data folder, which servers it has started; gone when it stops.
STACK_FILE = "stack.env"

#: What one worker child can hold at most (`kernel.limits.SLOTS_PER_CHILD`, checked there again).
_SLOTS_MAX = 32


class BatonEnv(BaseSettings):
    """The process environment of one Baton deployment; see docs/operations.md for the prose."""

    model_config = SettingsConfigDict(env_prefix="BATON_", frozen=True, extra="ignore")

    #: MongoDB replica set that keeps the kernel's facts.
    mongo_url: str = "mongodb://127.0.0.1:27017/?replicaSet=rs0"
    #: Redis for the kernel's hints; empty = none, everything then works from Mongo polling.
    redis_url: str | None = None
    #: Celery broker; without it the Redis of the hints is used.
    broker_url: str | None = None
    #: Business database; empty = SQLite in the data folder.
    database_url: str | None = None
    #: Folder of everything the embedded stack keeps.
    data_dir: Path = BASE_DIR / ".data"
    #: Name of the Mongo database.
    database: str = Field(default="baton", pattern=r"^[A-Za-z0-9_-]{1,38}$")
    #: First part of every Redis key.
    key_prefix: str = Field(default="baton", pattern=r"^[A-Za-z0-9_.-]{1,64}$")
    #: Lease of a claim, seconds.
    lease_seconds: float = Field(default=15, gt=0, le=3600)
    #: How long a cancelled call may take to leave before its child is ended, seconds.
    hang_grace_seconds: float = Field(default=30, gt=0, le=3600)
    #: Shift of the database clock, milliseconds; tests only.
    clock_offset_ms: int = 0
    #: Workflow types that are switched off, separated by commas.
    types_off: Annotated[frozenset[str], NoDecode] = frozenset()
    #: Let page fetches reach private addresses; the demo's local pages only.
    fetch_allow_private: bool = False
    #: OpenAI-compatible endpoint; empty = the summariser of our own.
    llm_url: str | None = None
    llm_key: str | None = None
    llm_model: str = "gpt-4o-mini"
    #: Our own speech service (`manage.py speech_service`).
    speech_service_url: str = "http://127.0.0.1:8090"
    #: OpenAI-compatible transcription endpoint; empty = the speech service.
    speech_url: str | None = None
    speech_key: str | None = None
    speech_model: str = "whisper-1"
    #: Where providers reach this API to call back; empty = they are only polled.
    public_url: str | None = None
    #: Django's SECRET_KEY; empty = generated once into the data folder.
    secret_key: str | None = Field(default=None, min_length=32)
    #: Older keys that sessions and webhook signatures are still good for, separated by commas.
    secret_key_fallbacks: Annotated[tuple[str, ...], NoDecode] = ()
    debug: bool = False
    #: Host names the web process answers to, separated by commas.
    allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ("localhost", "127.0.0.1", "[::1]")
    #: Origins whose forms are trusted (``https://ops.example``), separated by commas.
    csrf_trusted_origins: Annotated[tuple[str, ...], NoDecode] = ()
    #: Send cookies over HTTPS only.
    secure_cookies: bool = False
    #: Calls of the API a tenant may make, ``calls/seconds``; None (``off``) = no limit.
    api_rate: Annotated[tuple[int, int] | None, NoDecode] = (600, 60)
    #: Claims one worker child runs side by side: ``16``, or by queue ``media=16,content=4``.
    slots_per_child: Annotated[int | dict[str, int], NoDecode] = 1
    #: Commits of one process that travel as one command at most.
    group_commits: int = Field(default=32, ge=1, le=1000)
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR|CRITICAL)$")
    log_format: str = Field(default="json", pattern="^(json|text)$")

    @field_validator(
        "types_off",
        "allowed_hosts",
        "csrf_trusted_origins",
        "secret_key_fallbacks",
        mode="before",
    )
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return [part.strip() for part in value.split(",") if part.strip()]
        return value

    @field_validator(
        "redis_url",
        "broker_url",
        "database_url",
        "llm_url",
        "llm_key",
        "secret_key",
        "speech_url",
        "speech_key",
        "public_url",
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: object) -> object:
        return None if isinstance(value, str) and not value.strip() else value

    @field_validator("api_rate", mode="before")
    @classmethod
    def _rate(cls, value: object) -> object:
        if not isinstance(value, str) or not value.strip():
            return cls.model_fields["api_rate"].default if isinstance(value, str) else value
        if value.strip().lower() == "off":
            return None
        found = re.fullmatch(r"([1-9][0-9]{0,6})/([1-9][0-9]{0,4})", value.strip())
        if found is None:
            raise ValueError("write calls/seconds, as in 600/60, or off")
        return int(found[1]), int(found[2])

    @field_validator("slots_per_child", mode="before")
    @classmethod
    def _slots(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        text = value.replace(" ", "") or "1"
        found = re.fullmatch(r"[0-9]+|[^=,]+=[0-9]+(,[^=,]+=[0-9]+)*", text)
        slots = [int(part.rpartition("=")[2]) for part in text.split(",")] if found else []
        if not slots or not all(1 <= each <= _SLOTS_MAX for each in slots):
            raise ValueError(f"write 1 to {_SLOTS_MAX}, as in 16, or by queue media=16,content=4")
        if "=" not in text:
            return slots[0]
        return {
            part.partition("=")[0]: each for part, each in zip(text.split(","), slots, strict=True)
        }

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @field_validator("mongo_url", "speech_service_url", mode="before")
    @classmethod
    def _empty_is_default(cls, value: object, info: ValidationInfo) -> object:
        default = cls.model_fields[str(info.field_name)].default
        return default if isinstance(value, str) and not value.strip() else value

    @field_validator("speech_service_url", "speech_url", "public_url")
    @classmethod
    def _http(cls, value: str | None) -> str | None:
        return value and _checked(value, _HTTP_SCHEMES)

    @field_validator("mongo_url")
    @classmethod
    def _mongo(cls, value: str) -> str:
        return _checked(value, _MONGO_SCHEMES)

    @field_validator("redis_url")
    @classmethod
    def _redis(cls, value: str | None) -> str | None:
        return value and _checked(value, _REDIS_SCHEMES)

    @field_validator("broker_url")
    @classmethod
    def _broker(cls, value: str | None) -> str | None:
        return value and _checked(value, _BROKER_SCHEMES)

    @field_validator("database_url")
    @classmethod
    def _database(cls, value: str | None) -> str | None:
        return value and _checked(value, _DATABASE_SCHEMES)

    @property
    def effective_broker_url(self) -> str:
        """The broker: its own, else the hints' Redis, else a Redis on the usual local port."""
        return self.broker_url or self.redis_url or "redis://127.0.0.1:6379/0"


def read_environment() -> BatonEnv:
    """Read the environment, and beneath it what a running `make up` left in its data folder.

    So commands in a second terminal find the stack of the first; a variable of one's own wins.

    Raises:
        ImproperlyConfigured: a variable has a value that cannot be used; all of them are named.
    """
    folder = Path(os.environ.get("BATON_DATA_DIR") or BASE_DIR / ".data")
    try:
        return BatonEnv(_env_file=folder / STACK_FILE)
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_url=False, include_input=False):
            name = "BATON_" + "_".join(str(part) for part in problem["loc"][:1]).upper()
            lines.append(f"{name}: {problem['msg'].removeprefix('Value error, ')}")
        message = "The environment cannot be used: " + "; ".join(lines)
        raise ImproperlyConfigured(message) from None


def _checked(url: str, schemes: tuple[str, ...]) -> str:
    scheme = urlsplit(url).scheme
    if scheme not in schemes:
        wanted = " or ".join(f"{name}://" for name in schemes)
        raise ValueError(f"the URL must start with {wanted}")
    return url
