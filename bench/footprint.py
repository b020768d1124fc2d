"""Bytes of database that one waiting workflow costs; worker memory it costs none."""

from __future__ import annotations

from typing import Any

from bench.figure import Figure
from bench.site import QUEUE, Site, connect, fresh_database, mongo
from bench.workflows import WAITING, definitions


def measure(site: Site, *, quick: bool) -> list[Figure]:
    """Put many workflows to sleep; the raw limit is their identity and input alone."""
    workflows = 500 if quick else 10_000
    with fresh_database(site) as environment:
        kernel = connect(environment)
        kernel.ensure_schema()
        for definition in definitions():
            kernel.register(definition)
        for number in range(workflows):
            kernel.start_or_resume(WAITING, biz_key=f"wait:{number}", input={"number": number})
        kernel.drain([QUEUE])
        asleep = len(kernel.list_instances(status="waiting", limit=1))
        kernel.close()
        if not asleep:
            raise RuntimeError("nothing waits")
        with mongo(environment) as client:
            database = client[environment["BATON_DATABASE"]]
            instances = database["workflow_instances"]
            waiting = instances.count_documents({"status": "waiting"})
            if waiting != workflows:
                raise RuntimeError(f"{waiting} of {workflows} workflows wait")
            bare = database["bare"]
            bare.create_index("workflow_id", unique=True)
            identity = {"_id": 0, "workflow_id": 1, "biz_key": 1, "input": 1}
            bare.insert_many(instances.find({}, identity))
            client.admin.command("fsync")
            full, least = _sizes(database, "workflow_instances"), _sizes(database, "bare")
    per = {name: value / workflows for name, value in full.items()}
    return [
        Figure(
            name="database bytes per waiting workflow",
            value=per["data"],
            unit="B",
            raw_name="identity and input alone",
            raw=least["data"] / workflows,
            aim="<= 2,048 B",
            note=(
                f"uncompressed documents; indexes {per['indexes']:.0f} B more;"
                f" documents on disk, compressed, {per['disk']:.0f} B; {workflows} workflows"
            ),
        )
    ]


def _sizes(database: Any, collection: str) -> dict[str, float]:
    seen = database.command("collStats", collection)
    return {
        "data": float(seen["size"]),
        "indexes": float(seen["totalIndexSize"]),
        "disk": float(seen["storageSize"]),
    }
