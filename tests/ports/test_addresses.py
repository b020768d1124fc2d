"""Which addresses and host forms are refused, and that public ones are not."""

import socket
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.fetching.addresses import as_ipv4, refusal

UNFIT = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "0.0.0.0", "0.1.2.3", "100.64.0.1", "100.127.255.255", "169.254.169.254", "169.254.0.1",
    "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.7", "203.0.113.9",
    "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::ffff:0:127.0.0.1",
    "::127.0.0.1", "::7f00:1", "64:ff9b::7f00:1", "64:ff9b::10.1.2.3", "64:ff9b:1::1",
    "2002:7f00:1::", "2002:a00:1::1", "2002:c0a8:101::1", "2001::1", "2001:0:4136:e378::1",
    "2001:db8::1", "3fff::1", "100::1", "5f00::1", "4000::1",
    "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1", "not an address", "",
]  # fmt: skip
FIT = [
    "1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "192.0.1.1", "223.255.255.255",
    "2606:4700:4700::1111", "2a00:1450::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1",
    "2002:101:101::1",
]  # fmt: skip


@pytest.mark.parametrize("address", UNFIT)
def test_unfit_address_is_refused_with_a_reason(address: str) -> None:
    assert refusal(address)


@pytest.mark.parametrize("address", FIT)
def test_public_address_is_fit(address: str) -> None:
    assert refusal(address) is None


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.1.1", "::1", "fd00::1", "::ffff:127.0.0.1"])
def test_setting_opens_loopback_and_private_ranges(address: str) -> None:
    assert refusal(address, allow_private=True) is None


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "fe80::1", "0.0.0.0", "224.0.0.1", "::ffff:169.254.169.254"]
)
def test_setting_leaves_metadata_unspecified_and_multicast_shut(address: str) -> None:
    assert refusal(address, allow_private=True)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("0x", "0.0.0.0"),
        ("192.168.257", "192.168.1.1"),
        ("169.254.43518", "169.254.169.254"),
        ("127.0.0.1.", "127.0.0.1"),
        ("8.8.8.8", "8.8.8.8"),
    ],
)
def test_numeric_host_forms_are_read_as_systems_read_them(host: str, address: str) -> None:
    assert as_ipv4(host) == IPv4Address(address)


@pytest.mark.parametrize(
    "host", ["1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "09.1", "0xg"]
)
def test_numbers_that_are_no_address_are_an_error(host: str) -> None:
    with pytest.raises(ValueError, match="IPv4"):
        as_ipv4(host)


@pytest.mark.parametrize("host", ["example.com", "1.2.3.example", "a1", "x0"])
def test_names_are_not_numbers(host: str) -> None:
    assert as_ipv4(host) is None


@given(st.integers(min_value=0, max_value=2**32 - 1), st.sampled_from(["d", "x", "o"]))
def test_every_whole_number_means_what_the_system_makes_of_it(number: int, form: str) -> None:
    host = {"d": f"{number}", "x": f"{number:#x}", "o": f"0{number:o}"}[form]
    assert as_ipv4(host) == IPv4Address(socket.inet_aton(host))
