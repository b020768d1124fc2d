"""Adapters of the page and recording ports: one public web address in, its content out.

Guarantees: nothing but public web servers is contacted (`guard`), nothing larger or slower than
the limits is taken (`body`, `jobs.ports.wire`), bytes are read in their real encoding (`decoding`),
and a page without text is an error (`extraction`). Leaves to others: whether to ask again, and
robots or rate rules of a site (the step's permit). Design 7.
"""

from jobs.fetching.fetcher import PageFetcher
from jobs.fetching.recordings import RecordingFetcher

__all__ = ["PageFetcher", "RecordingFetcher"]
