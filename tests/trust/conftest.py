"""A deployment for one test, on the run's servers or on some of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.own_servers import own_mongo, own_redis  # noqa: F401 - fixtures of this tier
from tests.trust.stage import Stage

BuildStage = Callable[..., Stage]


@pytest.fixture
def build_stage(child_env: dict[str, str], tmp_path: Path) -> Iterator[BuildStage]:
    """Build deployments; keyword arguments change where their servers are."""
    built: list[Stage] = []

    def build(**env: str) -> Stage:
        stage = Stage.build({**child_env, **env}, tmp_path)
        built.append(stage)
        return stage

    yield build
    for stage in built:
        stage.close()


@pytest.fixture
def stage(build_stage: BuildStage) -> Stage:
    """A deployment on the run's servers."""
    return build_stage()
