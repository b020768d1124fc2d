"""After MongoDB was away, living holders answer before anybody takes over."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from config.embedded import MongoServer
from kernel import InstanceStatus, Kernel
from kernel.errors import StoreUnavailable
from kernel.store import Connection, InstanceStore, StoreClock
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.kit.servers import mongod_of_one_test
from tests.kit.waiting import eventually

LEASE_SECONDS = 3

#: The tests are about what comes after an absence, so noticing it need not take the usual time.
pytestmark = pytest.mark.usefixtures("eager_driver", "impatient_store")


@pytest.fixture
def own_mongo(tmp_path: Path) -> Iterator[MongoServer]:
    with mongod_of_one_test(tmp_path / "mongo") as server:
        yield server


def answers(kernel: Kernel, workflow_id: str) -> bool:
    try:
        kernel.get(workflow_id)
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize("with_redis", [True, False])
def test_a_lease_that_ran_out_in_an_outage_is_left_for_its_holder_at_first(
    make_kernel: MakeKernel, own_mongo: MongoServer, mongo_db_name: str, with_redis: bool
) -> None:
    quick = definition("silence.quick", {"only": lambda _: None})
    kernel = make_kernel(quick, mongo_url=own_mongo.url, lease=LEASE_SECONDS, with_redis=with_redis)
    held = start(kernel, quick, biz_key="silence:held")
    connection = Connection(own_mongo.url, database=mongo_db_name)
    holder = InstanceStore(connection, kernel.clock)
    assert holder.claim(
        held,
        fingerprints=[quick.plan.fingerprint],
        token="t" * 32,
        owner="elsewhere:1:1",
        lease_ms=500,
    )
    free = start(kernel, quick, biz_key="silence:free")
    own_mongo.kill()
    eventually(lambda: not answers(kernel, held), 10, "MongoDB still answers")
    own_mongo.start()
    eventually(lambda: answers(kernel, held), 20, "MongoDB never came back")

    assert kernel.drain([QUEUE]) == 1, "what nobody holds may run at once"
    assert kernel.get(free).status is InstanceStatus.COMPLETED
    assert kernel.get(held).claim_token == "t" * 32
    assert holder.renew([(held, "t" * 32)], lease_ms=500) == set()

    def is_taken_over() -> bool:
        kernel.reconcile()
        kernel.drain([QUEUE])
        return kernel.get(held).status is InstanceStatus.COMPLETED

    eventually(is_taken_over, 10, "the holder's end was never noticed")
    connection.close()


def test_who_began_to_look_during_the_absence_is_as_careful(
    make_kernel: MakeKernel, own_mongo: MongoServer
) -> None:
    """His command waits in the driver for MongoDB, so it must not be one of before the absence."""
    quick = definition("silence.quick", {"only": lambda _: None})
    kernel = make_kernel(quick, mongo_url=own_mongo.url, lease=LEASE_SECONDS, with_redis=False)
    held = start(kernel, quick, biz_key="silence:held")
    connection = Connection(own_mongo.url, database=kernel.config.database)
    assert InstanceStore(connection, kernel.clock).claim(
        held,
        fingerprints=[quick.plan.fingerprint],
        token="t" * 32,
        owner="elsewhere:1:1",
        lease_ms=1,
    )
    connection.close()
    own_mongo.kill()
    eventually(lambda: not answers(kernel, held), 10, "MongoDB still answers")
    with ThreadPoolExecutor(1) as looking:
        look = looking.submit(_looks, kernel)
        own_mongo.start()
        assert look.result() >= 0
    eventually(lambda: answers(kernel, held), 20, "MongoDB never came back")
    assert kernel.get(held).claim_token == "t" * 32


def test_a_process_that_came_during_the_absence_is_as_careful(
    own_mongo: MongoServer, mongo_db_name: str
) -> None:
    connection = Connection(own_mongo.url, database=mongo_db_name)
    fresh = Connection(own_mongo.url, database=mongo_db_name)
    store = InstanceStore(fresh, StoreClock())
    connection.require_replica_set()
    own_mongo.kill()
    with pytest.raises(StoreUnavailable):
        store.now()
    own_mongo.start()
    eventually(lambda: _is_here(store), 20, "MongoDB never came back")
    assert fresh.came_back_within(20)
    late = Connection(own_mongo.url, database=mongo_db_name)
    assert InstanceStore(late, StoreClock()).now()
    assert not late.came_back_within(20), "its first search for the primary was no absence"
    for each in (connection, fresh, late):
        each.close()


def _looks(kernel: Kernel) -> int:
    """Look until MongoDB answers a look."""
    while True:
        try:
            return kernel.drain([QUEUE])
        except StoreUnavailable:
            continue


def _is_here(store: InstanceStore) -> bool:
    try:
        return bool(store.now())
    except StoreUnavailable:
        return False
