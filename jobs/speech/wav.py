"""Read a WAV file into what the recogniser wants: 16 kHz, one channel, signed 16 bit.

Guarantees: what cannot be read is refused with a sentence that says why; other rates, widths and
channel counts are converted simply (average of channels, moving average, linear interpolation).
Leaves to others: recognising. Pure.
"""

import io
import sys
import wave
from array import array
from itertools import accumulate

RATE = 16_000
#: Longest recording taken, seconds.
MAX_SECONDS = 3600
_RATES = range(4_000, 192_001)


class UnreadableAudio(Exception):
    """The bytes are no recording this service can read; the message says why."""


def read_wav(data: bytes) -> bytes:
    """Return raw 16 kHz mono little-endian samples. Raises: UnreadableAudio."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise UnreadableAudio("This is no WAV file; send uncompressed PCM in a RIFF container.")
    try:
        with wave.open(io.BytesIO(data)) as file:
            channels, width, rate = file.getnchannels(), file.getsampwidth(), file.getframerate()
            frames = file.readframes(file.getnframes())
    except Exception as exc:
        # The parser meets broken headers with whatever exception they happen to cause.
        raise UnreadableAudio(f"The WAV file cannot be read: {exc or 'it is cut short'}.") from exc
    if rate not in _RATES:
        raise UnreadableAudio(f"A sample rate of {rate} Hz cannot be read; use {RATE} Hz.")
    if not 1 <= channels <= 8 or width not in (1, 2, 3, 4):
        raise UnreadableAudio(f"{channels} channels of {8 * width} bits cannot be read.")
    frames = frames[: len(frames) // (channels * width) * channels * width]
    if not frames:
        raise UnreadableAudio("The recording holds no sound at all.")
    if len(frames) / (channels * width * rate) > MAX_SECONDS:
        raise UnreadableAudio(f"The recording is longer than {MAX_SECONDS} seconds, the limit.")
    samples = _mono(_as_16_bit(frames, width), channels)
    return _little_endian(samples if rate == RATE else _resampled(samples, rate))


def _as_16_bit(frames: bytes, width: int) -> "array[int]":
    """Keep the two most significant bytes of every sample; 8 bit is unsigned in WAV."""
    if width == 1:
        high = frames.translate(bytes(value ^ 0x80 for value in range(256)))
        frames = _interleaved(bytes(len(high)), high)
    elif width > 2:
        frames = _interleaved(frames[width - 2 :: width], frames[width - 1 :: width])
    samples = array("h")
    samples.frombytes(frames)
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


def _interleaved(low: bytes, high: bytes) -> bytes:
    both = bytearray(2 * len(high))
    both[0::2], both[1::2] = low, high
    return bytes(both)


def _mono(samples: "array[int]", channels: int) -> "array[int]":
    if channels == 1:
        return samples
    each = [samples[channel::channels] for channel in range(channels)]
    return array("h", (sum(values) // channels for values in zip(*each, strict=True)))


def _resampled(samples: "array[int]", rate: int) -> "array[int]":
    width = max(1, round(rate / RATE))
    if width > 1:
        # Whatever is above half the new rate would come back as noise.
        sums = [0, *accumulate(samples)]
        samples = array("h", ((b - a) // width for a, b in zip(sums, sums[width:], strict=False)))
    last = len(samples) - 1
    out = array("h")
    for number in range(len(samples) * RATE // rate):
        position, part = divmod(number * rate, RATE)
        here, there = samples[position], samples[min(position + 1, last)]
        out.append(here + (there - here) * part // RATE)
    if not out:
        raise UnreadableAudio("The recording is too short to hear anything in it.")
    return out


def _little_endian(samples: "array[int]") -> bytes:
    if sys.byteorder == "big":
        samples.byteswap()
    return samples.tobytes()
