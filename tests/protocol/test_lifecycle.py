"""Kernels come and go: schema, servers that are none, closing, and what is not there yet."""

import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from kernel import (
    Kernel,
    KernelConfig,
    NotAReplicaSet,
    StoreUnavailable,
    UsageError,
)
from kernel.store.schema import INSTANCES
from tests.kit.kernels import QUEUE, MakeKernel, definition, start
from tests.protocol.failing_mongo import StandaloneMongo


def test_the_schema_may_be_ensured_by_many_at_once_and_again(
    mongo_url: str, mongo_client: MongoClient[dict[str, Any]]
) -> None:
    name = f"t_{uuid.uuid4().hex[:16]}"
    config = KernelConfig(mongo_url=mongo_url, database=name)
    kernels = [Kernel.connect(config) for _ in range(8)]
    barrier, errors = threading.Barrier(8), list[BaseException]()

    def ensure(kernel: Kernel) -> None:
        barrier.wait(20)
        try:
            kernel.ensure_schema()
        except BaseException as error:  # noqa: BLE001 - any error is the test's finding
            errors.append(error)

    threads = [threading.Thread(target=ensure, args=(kernel,)) for kernel in kernels]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    before = mongo_client[name][INSTANCES].index_information()
    kernels[0].ensure_schema()
    assert mongo_client[name][INSTANCES].index_information() == before
    assert before["biz_key"]["unique"]
    assert before["workflow_id"]["unique"]
    for kernel in kernels:
        kernel.close()
    mongo_client.drop_database(name)


def test_a_standalone_server_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with StandaloneMongo(tmp_path) as server:
        kernel = Kernel.connect(KernelConfig(mongo_url=server.url))
        with pytest.raises(NotAReplicaSet, match=r"rs\.initiate"):
            kernel.ensure_schema()
        kernel.close()
        server.kill()


def test_a_server_that_is_not_there_is_a_typed_error_in_our_words(impatient_store: None) -> None:
    kernel = Kernel.connect(KernelConfig(mongo_url="mongodb://127.0.0.1:1/?replicaSet=rs0"))
    order = definition("test.away", {"a": lambda _: None})
    kernel.register(order)
    calls: list[Callable[[], object]] = [
        kernel.ensure_schema,
        lambda: kernel.start_or_resume(order.plan, biz_key="x", timeout=0.2),
        lambda: kernel.supersede("wf_x", reason="x", timeout=0.2),
        lambda: kernel.drain([QUEUE]),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable, match="MongoDB did not answer"):
            call()
    kernel.close()


@pytest.mark.parametrize("url", ["http://x", "mongodb://", "mongodb://a:b:c@x/"])
def test_an_address_that_is_none_is_a_usage_error(url: str) -> None:
    with pytest.raises(UsageError, match="mongo_url"):
        Kernel.connect(KernelConfig(mongo_url=url))


def test_an_address_of_redis_that_is_none_is_a_usage_error(mongo_url: str) -> None:
    with pytest.raises(UsageError, match="Redis"):
        Kernel.connect(KernelConfig(mongo_url=mongo_url, redis_url="http://x"))


def test_a_closed_kernel_says_so_and_closes_again(make_kernel: MakeKernel) -> None:
    order = definition("test.closed", {"a": lambda _: None})
    kernel = make_kernel(order)
    workflow_id = start(kernel, order)
    kernel.close()
    kernel.close()
    with pytest.raises(StoreUnavailable):
        kernel.get(workflow_id)


def test_kernels_leave_no_thread_behind(make_kernel: MakeKernel, eventually: Any) -> None:
    before = {thread.ident for thread in threading.enumerate()}
    order = definition("test.threads", {"a": lambda _: None})
    for n in range(3):
        kernel = make_kernel(order)
        start(kernel, order, biz_key=str(n))
        kernel.drain([QUEUE])
        kernel.close()

    def left() -> list[str]:
        fresh = [t for t in threading.enumerate() if t.ident not in before]
        return [t.name for t in fresh if t.name.startswith("baton")]

    eventually(lambda: not left(), message="threads are left")


def test_an_idle_kernel_waits_for_nothing(kernel: Kernel) -> None:
    assert kernel.drain([QUEUE]) == 0
    assert kernel.drain([]) == 0
    assert not kernel.run_once([QUEUE])
    assert kernel.tick() == 0
    assert kernel.reconcile().ran


def test_two_databases_on_one_server_know_nothing_of_each_other(
    make_kernel: MakeKernel, mongo_client: MongoClient[dict[str, Any]]
) -> None:
    order = definition("test.apart", {"a": lambda _: None})
    other_name = f"t_{uuid.uuid4().hex[:16]}"
    one = make_kernel(order, with_redis=False)
    other = make_kernel(order, with_redis=False, database=other_name)
    workflow_id = start(one, order)
    assert other.find(biz_key="test:1") is None
    assert other.drain([QUEUE]) == 0
    assert one.drain([QUEUE]) == 1
    assert one.get(workflow_id).status.is_terminal
    other.close()
    mongo_client.drop_database(other_name)
