"""JSON columns give back exactly what was put in."""

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel.errors import InvalidValue
from tests.dispatch.rows import new_job, stored

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
leaves = st.none() | st.booleans() | numbers | texts
keys = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
odd_keys = st.sampled_from(["", "$ref", "$id", "a.b", "$", ".", "\u2028"])
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd_keys | keys, inner, max_size=4),
    max_leaves=20,
)


@pytest.mark.django_db
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(value=st.dictionaries(odd_keys | keys, values, max_size=5))
def test_any_object_comes_back_equal_with_types_and_order(value: dict[str, Any]) -> None:
    kept = stored(new_job(metadata=value)).metadata
    assert json.dumps(kept) == json.dumps(value)


@pytest.mark.django_db
def test_nul_minus_zero_and_large_floats_survive() -> None:
    value = {"nul": "a\x00b", "minus": -0.0, "large": 1e16, "int": 2**63 - 1}
    kept = stored(new_job(metadata=value)).metadata
    assert kept == value
    assert math.copysign(1, kept["minus"]) == -1
    assert type(kept["large"]) is float


@pytest.mark.django_db
def test_nan_is_refused_before_the_write() -> None:
    with pytest.raises(InvalidValue):
        new_job(metadata={"x": math.nan})
