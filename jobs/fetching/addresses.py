"""Which IP addresses are fit to be fetched from.

Guarantees: `refusal` names a reason for every address that is not plainly public, also when it
hides an IPv4 address inside an IPv6 one; `as_ipv4` reads the numeric host forms that operating
systems accept and people do not recognise. Pure. Leaves to others: names, ports, look-ups.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_PRIVATE = "a private network"
_LOOPBACK = "this machine itself (loopback)"
_LINK_LOCAL = "a link-local address, where clouds keep their metadata"
_RESERVED = "a reserved range"
_DOCUMENTATION = "a documentation or test range"

_IPV4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("127.0.0.0/8", _LOOPBACK),
        ("10.0.0.0/8", _PRIVATE),
        ("172.16.0.0/12", _PRIVATE),
        ("192.168.0.0/16", _PRIVATE),
        ("0.0.0.0/8", "an unspecified address"),
        ("100.64.0.0/10", "a carrier's shared range"),
        ("169.254.0.0/16", _LINK_LOCAL),
        ("192.0.0.0/24", _RESERVED),
        ("192.0.2.0/24", _DOCUMENTATION),
        ("192.88.99.0/24", _RESERVED),
        ("198.18.0.0/15", _DOCUMENTATION),
        ("198.51.100.0/24", _DOCUMENTATION),
        ("203.0.113.0/24", _DOCUMENTATION),
        ("224.0.0.0/4", "a multicast group"),
        ("240.0.0.0/4", _RESERVED),
    )
)

_IPV6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::1/128", _LOOPBACK),
        ("::/128", "an unspecified address"),
        ("fc00::/7", _PRIVATE),
        ("fec0::/10", _PRIVATE),
        ("fe80::/10", _LINK_LOCAL),
        ("ff00::/8", "a multicast group"),
        ("2001::/32", "a Teredo tunnel"),
        ("2001::/23", _RESERVED),
        ("2001:db8::/32", _DOCUMENTATION),
        ("3fff::/20", _DOCUMENTATION),
    )
)

#: IPv6 networks that carry an IPv4 address, and how far from the right it stands, in bits.
_CARRIERS: tuple[tuple[IPv6Network, int], ...] = (
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),
    (IPv6Network("::/96"), 0),
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")

#: What the setting `allow_private` opens; metadata and multicast stay shut.
_OPENED_BY_SETTING = frozenset({_PRIVATE, _LOOPBACK})


def refusal(address: str, *, allow_private: bool = False) -> str | None:
    """Say why `address` (text form, a scope id is allowed) must not be contacted; None if it may.

    `allow_private` opens private and loopback ranges only.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return "no IP address"
    reason = _reason4(parsed) if isinstance(parsed, IPv4Address) else _reason6(parsed)
    return None if allow_private and reason in _OPENED_BY_SETTING else reason


def _reason4(address: IPv4Address) -> str | None:
    return next((reason for network, reason in _IPV4 if address in network), None)


def _reason6(address: IPv6Address) -> str | None:
    for network, reason in _IPV6:
        if address in network:
            return reason
    for network, shift in _CARRIERS:
        if address in network:
            return _reason4(IPv4Address((int(address) >> shift) & 0xFFFFFFFF))
    if _isatap(address):
        return _reason4(IPv4Address(int(address) & 0xFFFFFFFF))
    return None if address in _GLOBAL_UNICAST else _RESERVED


def _isatap(address: IPv6Address) -> bool:
    """Recognise the interface id of an intra-site tunnel, which ends in an IPv4 address."""
    return (int(address) >> 32) & 0xFDFFFFFF == 0x5EFE


def as_ipv4(host: str) -> IPv4Address | None:
    """Read `host` as the browsers' URL rules do: `2130706433`, `0x7f.1`, `0177.0.0.1`, `127.1`.

    Gives None when the last label is no number, so that `host` is a name.
    Raises: ValueError when it looks like a number and is no address.
    """
    labels = host.removesuffix(".").split(".")
    if not _is_number(labels[-1]):
        return None
    if len(labels) > 4:
        raise ValueError(f"{host!r} has too many parts for an IPv4 address")
    try:
        numbers = [_number(label) for label in labels]
    except ValueError as exc:
        raise ValueError(f"{host!r} looks like an IPv4 address and is none") from exc
    *front, last = numbers
    if any(number > 255 for number in front) or last >= 256 ** (5 - len(numbers)):
        raise ValueError(f"{host!r} is beyond the IPv4 addresses")
    return IPv4Address(last + sum(n << 8 * (3 - i) for i, n in enumerate(front)))


def _is_number(label: str) -> bool:
    return label.isascii() and (label.isdigit() or label.lower().startswith("0x"))


def _number(label: str) -> int:
    if label.lower().startswith("0x"):
        return int(label[2:] or "0", 16)
    if len(label) > 1 and label.startswith("0"):
        return int(label, 8)
    return int(label, 10)
