"""The one table of refusals: slug, status, title, and what a client should do.

Guarantees: a slug once published keeps its meaning; each has a page at ``/problems/<slug>`` and a
line in docs/api.md. Leaves to others: which error becomes which problem (``jobs.api.errors``).
"""

from dataclasses import dataclass

JSON_MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemType:
    """One kind of refusal, as RFC 9457 means it."""

    #: Last part of the ``type`` URL; clients branch on it.
    slug: str
    #: HTTP status it is sent with.
    status: int
    #: The same few words in each occurrence.
    title: str
    #: What the client should do about it.
    advice: str
    #: Whether the same request may succeed later.
    retryable: bool = False


def _table(*rows: tuple[str, int, str, str, bool]) -> dict[str, ProblemType]:
    return {
        slug: ProblemType(slug=slug, status=status, title=title, advice=advice, retryable=retryable)
        for slug, status, title, advice, retryable in rows
    }


PROBLEMS: dict[str, ProblemType] = _table(
    (
        "bad-request",
        400,
        "The request cannot be understood",
        "Correct what `detail` names: the Host header, the request line or a header.",
        False,
    ),
    (
        "malformed-json",
        400,
        "The body is not JSON",
        (
            "Send one JSON object in UTF-8. NaN, Infinity, repeated names in an object and nesting "
            "beyond the limit are refused too, because they could not be given back as they came."
        ),
        False,
    ),
    (
        "bad-cursor",
        400,
        "The cursor is not one of ours",
        "Start again without `cursor` and follow the `next` links as they are.",
        False,
    ),
    (
        "bad-filter",
        400,
        "The list cannot be filtered like this",
        "Use the parameters named in `detail`.",
        False,
    ),
    (
        "idempotency-key-malformed",
        400,
        "The Idempotency-Key is malformed",
        (
            "Send 16 to 255 visible ASCII characters, in double quotes or bare; a fresh UUID for "
            "each request is best."
        ),
        False,
    ),
    (
        "unauthenticated",
        401,
        "Credentials are missing or no longer valid",
        "Send `Authorization: Bearer <token>` with a token that is neither expired nor revoked.",
        False,
    ),
    (
        "forbidden",
        403,
        "These credentials may not do this",
        "Use a token of the tenant; a browser session also needs its CSRF token.",
        False,
    ),
    (
        "not-found",
        404,
        "There is no such thing",
        "Check the address. Things of other tenants do not exist for you.",
        False,
    ),
    (
        "method-not-allowed",
        405,
        "This address does not take this method",
        "Use a method listed in the `Allow` header.",
        False,
    ),
    (
        "not-acceptable",
        406,
        "Nothing here has the wanted media type",
        "Accept `application/json`.",
        False,
    ),
    (
        "not-retryable",
        409,
        "The job is not in a state that can be retried",
        "Only a failed job can be retried; read it for its present status.",
        False,
    ),
    (
        "round-in-progress",
        409,
        "Another round of this job is in progress",
        "Somebody else has retried it; follow the job instead of asking again.",
        False,
    ),
    (
        "already-terminal",
        409,
        "The job has already ended",
        "A finished job cannot be canceled; read it for its result.",
        False,
    ),
    (
        "event-closed",
        409,
        "The live event is over",
        "It stays as it is; read it for its status and recording.",
        False,
    ),
    (
        "choice-not-open",
        409,
        "The job offers no choice now",
        "Read `/jobs/{id}/choice` until it offers candidates; a job that is over offers none.",
        False,
    ),
    (
        "choice-already-made",
        409,
        "Another option was chosen",
        "A choice is final; regenerate the job to be asked again.",
        False,
    ),
    (
        "idempotency-in-progress",
        409,
        "The first request with this key is still being stored",
        "Repeat the same request with the same key after `Retry-After`.",
        True,
    ),
    (
        "token-replaced",
        409,
        "The token was rotated before",
        "Use the token that the rotation returned; if it is lost, have one issued.",
        False,
    ),
    (
        "precondition-failed",
        412,
        "It was changed since you read it",
        "Read it again, look at what changed, and send the `ETag` of that answer as `If-Match`.",
        False,
    ),
    (
        "too-large",
        413,
        "The body is too large",
        "Send at most `limit_bytes`; keep big things elsewhere and send a reference.",
        False,
    ),
    (
        "unsupported-media-type",
        415,
        "The body's media type is not supported",
        "Send `Content-Type: application/json`.",
        False,
    ),
    (
        "validation",
        422,
        "The request is well formed, but something in it is not valid",
        (
            "Correct each place listed in `errors` (JSON pointers into the body). Unknown fields "
            "are refused, so that a misspelt one is never ignored."
        ),
        False,
    ),
    (
        "unknown-option",
        422,
        "The choice has no such option",
        "Choose one of the options that `/jobs/{id}/choice` lists.",
        False,
    ),
    (
        "value-not-kept",
        422,
        "A value cannot be kept exactly as it is",
        (
            "Values come back equal or are refused: integers beyond 64 bit, lone surrogates, NUL "
            "where it cannot be stored and too deep nesting. `errors` names the place."
        ),
        False,
    ),
    (
        "value-too-large",
        422,
        "A value is over its size limit",
        "Store it elsewhere and send a reference; `limit_bytes` names the limit.",
        False,
    ),
    (
        "idempotency-key-reused",
        422,
        "The Idempotency-Key was used with another request",
        (
            "Use a new key for a new request. A repeat must be equal in method, address and body; "
            "`original` names what the key was used for."
        ),
        False,
    ),
    (
        "precondition-required",
        428,
        "The change does not say what it is based on",
        (
            "Read the thing first and send the `ETag` of that answer as `If-Match`; `*` is not "
            "accepted, because it would overwrite what you have not seen."
        ),
        False,
    ),
    (
        "quota-exceeded",
        429,
        "The tenant's quota of work is used up",
        (
            "`limit` and `used` count rounds of work; a round that fails or is canceled makes "
            "room. Wait for one to end, or ask for a larger quota."
        ),
        True,
    ),
    (
        "rate-limited",
        429,
        "The tenant calls too often",
        "Repeat after `Retry-After`; the `RateLimit` header of each answer says what is left.",
        True,
    ),
    (
        "internal",
        500,
        "Something went wrong on our side",
        "Report the `request_id`. Its effect is unknown: read before repeating.",
        True,
    ),
    (
        "unavailable",
        503,
        "A server this depends on does not answer",
        "Repeat the request after the number of seconds in `Retry-After`.",
        True,
    ),
)

#: What a plain HTTP status means when no finer slug is known.
BY_STATUS: dict[int, str] = {
    400: "bad-request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "too-large",
    412: "precondition-failed",
    415: "unsupported-media-type",
    422: "validation",
    428: "precondition-required",
    429: "rate-limited",
    503: "unavailable",
}
