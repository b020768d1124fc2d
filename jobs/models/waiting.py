"""Facts from outside that waiting workflows read: a user's choice, a provider's callback.

Guarantees: the fact is a row of its own, so it is stored before anybody is woken by it, and a
repeat finds it. Leaves to others: all writes (`jobs.services.choices`, `jobs.services.callbacks`).
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone

from jobs.dispatch import ExactJSONField
from jobs.models.content import ContentJob

OPTION_CHARACTERS = 40
PROVIDER_CHARACTERS = 40


class JobChoice(models.Model):
    """What a round of a job asks its user, and the answer once there is one."""

    job = models.ForeignKey(ContentJob, on_delete=models.CASCADE, related_name="choices")
    round = models.BigIntegerField()
    #: [{option, title, summary, sentences}], in the order they are offered.
    candidates = ExactJSONField(default=list)
    #: The option taken; NULL while the choice is open.
    option = models.CharField(max_length=OPTION_CHARACTERS, null=True)
    chosen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    opened_at = models.DateTimeField(default=timezone.now, editable=False)
    chosen_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        """One choice a round."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["job", "round"], name="choice_once_per_round")
        ]

    def __str__(self) -> str:
        return f"choice of {self.job_id}, round {self.round}: {self.option or 'open'}"


class ProviderCallback(models.Model):
    """One thing a provider told us about one of our requests; each is stored once."""

    provider = models.CharField(max_length=PROVIDER_CHARACTERS)
    #: Hex SHA-256 of the token in the address that was called.
    token_hash = models.CharField(max_length=64)
    #: Hex SHA-256 of what was said.
    body_hash = models.CharField(max_length=64)
    workflow_id = models.CharField(max_length=40)
    body = ExactJSONField()
    received_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        """Saying the same again makes no second row."""

        constraints: ClassVar[list[models.BaseConstraint]] = [
            models.UniqueConstraint(fields=["token_hash", "body_hash"], name="callback_once")
        ]

    def __str__(self) -> str:
        return f"{self.provider} about {self.workflow_id}"
