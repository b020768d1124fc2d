"""Whether a text can be a web address at all; what it leads to is seen when it is fetched.

Guarantees: no I/O, never raises. Leaves to others: the rules of the public web (`jobs.fetching`).
"""

from urllib.parse import urlsplit

from jobs.plans import URL_CHARACTERS


def is_web_address(url: object) -> bool:
    """Tell whether this is an http or https URL with a host, of bearable length."""
    if not isinstance(url, str) or not 0 < len(url) <= URL_CHARACTERS:
        return False
    if any(character.isspace() or not character.isprintable() for character in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme.lower() in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        return False
