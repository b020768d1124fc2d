"""What the service makes of sound files, good and odd."""

import contextlib
import math
import struct
from array import array
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.speech.wav import RATE, UnreadableAudio, read_wav
from tests.speech.service import wav


def tone(rate: int, seconds: float = 0.2, hertz: float = 440.0) -> "array[int]":
    count = int(rate * seconds)
    return array("h", (int(8000 * math.sin(2 * math.pi * hertz * i / rate)) for i in range(count)))


def crossings(samples: bytes) -> int:
    values = array("h", samples)
    return sum((a < 0) != (b < 0) for a, b in pairwise(values))


def test_what_is_right_already_is_left_alone() -> None:
    samples = tone(RATE).tobytes()
    assert read_wav(wav(samples)) == samples


@pytest.mark.parametrize("rate", [8_000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_another_rate_keeps_pitch_and_length(rate: int) -> None:
    converted = read_wav(wav(tone(rate).tobytes(), rate=rate))
    assert abs(len(converted) / 2 - 0.2 * RATE) < 10
    assert abs(crossings(converted) - 2 * 440 * 0.2) <= 3


@pytest.mark.parametrize("width", [1, 3, 4])
def test_another_width_keeps_the_sound(width: int) -> None:
    samples = tone(RATE)
    if width == 1:
        frames = bytes((value >> 8) + 128 for value in samples)
    else:
        pad = bytes(width - 2)
        frames = b"".join(pad + struct.pack("<h", value) for value in samples)
    converted = array("h", read_wav(wav(frames, width=width)))
    assert len(converted) == len(samples)
    assert all(abs(a - b) <= 256 for a, b in zip(converted, samples, strict=True))


def test_channels_are_averaged() -> None:
    frames = struct.pack("<hhhh", 100, 300, -50, -70)
    assert array("h", read_wav(wav(frames, channels=2))).tolist() == [200, -60]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no WAV"),
        (b"ID3\x03 an mp3", "no WAV"),
        (b"RIFF\x00\x00\x00\x00WAVE", "cannot be read"),
        (wav(b"")[:30], "cannot be read"),
        (wav(b""), "no sound"),
        (wav(b"\0\0", rate=1_000), "1000 Hz"),
        (wav(bytes(18), channels=9), "9 channels"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(data: bytes, words: str) -> None:
    with pytest.raises(UnreadableAudio, match=words):
        read_wav(data)


@given(st.binary(max_size=200), st.integers(0, 60))
@settings(deadline=None, max_examples=200)
def test_a_damaged_file_is_read_or_refused(noise: bytes, at: int) -> None:
    whole = wav(tone(RATE, 0.01).tobytes())
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    with contextlib.suppress(UnreadableAudio):
        assert len(read_wav(damaged)) % 2 == 0
