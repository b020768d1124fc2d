"""How a port fails.

    PortRefused (kernel.NonRetryable)   final: another attempt gives the same answer
    ├─ FetchRefused                     bad_url, ssrf_refused, unknown_host, not_found, forbidden,
    │                                   refused_by_site, too_many_redirects, bad_certificate,
    │                                   unsupported_type, unsupported_encoding, too_large, no_text
    │                                   no_audio
    ├─ ComposeRefused                   bad_setting, unauthorized, quota_exhausted, rejected,
    │                                   content_filtered, answer_too_long
    └─ SpeechRefused                    bad_setting, unauthorized, quota_exhausted, rejected,
                                        unsupported_format, too_large
    FailedForNow                        later may be better: .code, .retry_after (seconds or None)
    ├─ FetchFailedForNow                timeout, dns_failed, connection_failed, cut_short,
    │                                   server_error, rate_limited
    ├─ ComposeFailedForNow              the same codes, and empty_answer
    └─ SpeechFailedForNow               the same codes
    PortCancelled                       the caller's stop sign was up; nothing is known to be wrong

Guarantees: `code` is stable and lower case; the message is a sentence for people saying what and
why. Leaves to others: retry, backoff and cool-down, which are the step's.
"""

from kernel import NonRetryable


class PortRefused(NonRetryable):
    """The port gives this answer for good; the step fails without a further attempt."""


class FetchRefused(PortRefused):
    """The page cannot be had, or must not be asked for."""


class ComposeRefused(PortRefused):
    """The composer will not take this text, this key or this setting."""


class SpeechRefused(PortRefused):
    """The speech provider will not take this recording, this key or this setting."""


class FailedForNow(Exception):
    """A failure that may pass; the step's retry policy decides about another attempt."""

    def __init__(self, message: str, *, code: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        #: Stable name of the failure.
        self.code = code
        #: Seconds the other side asked to be left alone; None when it said nothing.
        self.retry_after = retry_after


class FetchFailedForNow(FailedForNow):
    """The page could not be had this time."""


class ComposeFailedForNow(FailedForNow):
    """The composer did not answer this time."""


class SpeechFailedForNow(FailedForNow):
    """The speech provider did not answer this time."""


class PortCancelled(Exception):
    """The caller's stop sign was up, so the call ended early without a result."""

    def __init__(self, message: str = "The call was cancelled before it finished.") -> None:
        super().__init__(message)
