"""Texts of any exception become storable; the failure itself is never lost for its looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel import NonRetryable, RetryPolicy
from kernel.engine.invoke import failure
from kernel.protocol.outcomes import Failed, encodable


@given(st.text(st.characters() | st.characters(categories=["Cs"])), st.integers(4, 60))
def test_any_text_becomes_encodable_within_its_limit(text: str, limit: int) -> None:
    made = encodable(text, limit_bytes=limit)
    assert len(made.encode()) <= limit


def test_a_text_that_fits_is_left_alone() -> None:
    assert encodable("déjà\x00vu", limit_bytes=64) == "déjà\x00vu"
    assert encodable("\ud800!", limit_bytes=64) == "\\ud800!"
    assert encodable("é" * 40, limit_bytes=64).endswith("…")


class Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Recursive(Exception):
    def __str__(self) -> str:
        return str(self)


class NotText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307 - what activities may raise


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("x"), "x"),
        (ValueError(), "ValueError"),
        (ValueError("\x00\ud800"), "\x00\\ud800"),
        (Speechless(), "Speechless (its text cannot be shown)"),
        (Recursive(), "Recursive (its text cannot be shown)"),
        (NotText(), "NotText (its text cannot be shown)"),
        (SystemExit(3), "3"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_every_exception_has_a_message(error: BaseException, message: str) -> None:
    failed = failure(error, RetryPolicy())
    assert isinstance(failed, Failed)
    assert failed.message == message
    assert failed.code == type(error).__name__


def test_a_huge_message_is_cut() -> None:
    failed = failure(ValueError("é" * 100_000), RetryPolicy())
    assert isinstance(failed, Failed)
    assert len(failed.message.encode()) <= 4096


@pytest.mark.parametrize("code", ["x" * 1000, "\ud800", 5, Speechless()])
def test_a_code_of_any_kind_is_made_storable(code: object) -> None:
    failed = failure(NonRetryable("bad", code=code), RetryPolicy())  # type: ignore[arg-type]
    assert isinstance(failed, Failed)
    assert 0 < len(failed.code.encode()) <= 64
    assert not failed.retryable


def test_a_policy_names_errors_that_no_repetition_cures() -> None:
    policy = RetryPolicy(max_retry=3, non_retryable=(LookupError,))
    keyed, other = failure(KeyError("x"), policy), failure(OSError("x"), policy)
    assert isinstance(keyed, Failed)
    assert isinstance(other, Failed)
    assert (keyed.retryable, other.retryable) == (False, True)
