"""Take a response's body off the wire without trusting its size.

Guarantees: never more than `limit` bytes are kept, before or after decompression, and a
decompressor is never asked for more than what is still allowed, so a bomb costs its first bytes
only. A body that ends early is an error, not a short page. Leaves to others: time (the socket's
bounds) and meaning.
"""

import zlib
from collections.abc import Iterable
from typing import Final

from jobs.ports.errors import FetchFailedForNow, FetchRefused

#: What a request offers; brotli and zstd are not offered because the standard library lacks them.
ACCEPT_ENCODING: Final = "gzip, deflate"


def read_body(chunks: Iterable[bytes], *, encoding: str, limit: int) -> bytes:
    """Collect a body, undoing the `Content-Encoding` named by `encoding`.

    Raises: FetchRefused (too_large, unsupported_encoding), FetchFailedForNow (cut_short) when the
    compressed data is broken or ends early.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return _read_plain(chunks, limit)
    if name in ("gzip", "x-gzip", "deflate"):
        return _read_compressed(chunks, limit, deflate=name == "deflate")
    raise FetchRefused(
        f"The page is sent with encoding {name[:40]!r}, which was not asked for.",
        code="unsupported_encoding",
    )


def too_large(limit: int) -> FetchRefused:
    """Build the refusal of a page over `limit` bytes."""
    return FetchRefused(f"The document is larger than {limit} bytes, the limit.", code="too_large")


def _read_plain(chunks: Iterable[bytes], limit: int) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise too_large(limit)
    return bytes(body)


def _read_compressed(chunks: Iterable[bytes], limit: int, *, deflate: bool) -> bytes:
    body = bytearray()
    received = 0
    # wbits: 47 recognises gzip and zlib headers by themselves, -15 is deflate without a header.
    window = 47
    inflater = zlib.decompressobj(window)
    for chunk in chunks:
        if deflate and not received and not _has_zlib_header(chunk):
            window = -15
            inflater = zlib.decompressobj(window)
        received += len(chunk)
        if received > limit:
            raise too_large(limit)
        inflater = _inflate(inflater, chunk, body, limit=limit, window=window)
    if received and not inflater.eof:
        raise FetchFailedForNow("The compressed page ended too early.", code="cut_short")
    return bytes(body)


def _inflate(
    inflater: "zlib._Decompress", data: bytes, body: bytearray, *, limit: int, window: int
) -> "zlib._Decompress":
    """Append what `data` inflates to; gives back the inflater to go on with."""
    while data:
        if inflater.eof:
            if not data.strip(b"\0"):
                break
            # A gzip body may consist of several members in a row.
            inflater = zlib.decompressobj(window)
        try:
            body += inflater.decompress(data, limit - len(body) + 1)
        except zlib.error as exc:
            raise FetchFailedForNow(
                f"The compressed page is broken ({exc}).", code="cut_short"
            ) from exc
        if len(body) > limit:
            raise too_large(limit)
        data = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
    return inflater


def _has_zlib_header(chunk: bytes) -> bool:
    return len(chunk) >= 2 and chunk[0] & 0x0F == 8 and (chunk[0] << 8 | chunk[1]) % 31 == 0
