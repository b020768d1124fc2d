"""Writing what another version of this code, or a hand, would leave in the database."""

from collections.abc import Mapping, Sequence
from typing import Any

from pymongo.collection import Collection


def alter(instances: Collection[Any], biz_keys: Sequence[str], change: Mapping[str, Any]) -> None:
    """Set fields of instances past this version's validator, which would refuse some of them."""
    update = {"q": {"biz_key": {"$in": list(biz_keys)}}, "u": {"$set": change}, "multi": True}
    instances.database.command(
        {"update": instances.name, "updates": [update], "bypassDocumentValidation": True}
    )
