"""Turn samples into text with PocketSphinx and its bundled English model.

Guarantees: the interpreter's lock is held for one short chunk at a time, so other threads of the
process go on; a stop is obeyed between chunks. Each stretch of speech between silences becomes one
sentence, with a capital and a full stop. Leaves to others: reading files (`wav`), queues (`tasks`).
"""

import re
from collections.abc import Callable, Iterator

from pocketsphinx import Decoder, Endpointer

from jobs.speech.wav import RATE

#: Bytes fed at once: a tenth of a second.
_CHUNK_BYTES = 3_200


class Stopped(Exception):
    """The stop sign was up; nothing is known to be wrong with the recording."""


def recognise(samples: bytes, *, stopped: Callable[[], bool]) -> str:
    """Return what was said; empty for silence. Raises: Stopped. On repeat: the same text."""
    heard = [text for speech in _stretches(samples, stopped) if (text := _hear(speech, stopped))]
    if not heard and any(samples):
        # Speech without a pause around it can escape the detector; then the whole is one stretch.
        heard = [text for text in [_hear(samples, stopped)] if text]
    return " ".join(_sentence(text) for text in heard)


def _stretches(samples: bytes, stopped: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the stretches of speech between silences."""
    detector = Endpointer(sample_rate=RATE)
    size = detector.frame_bytes
    speech = bytearray()
    for start in range(0, len(samples), size):
        if stopped():
            raise Stopped
        frame = samples[start : start + size]
        is_last = start + size >= len(samples)
        piece = detector.end_stream(frame) if is_last else detector.process(frame)
        if piece is not None:
            speech += piece
            if not detector.in_speech:
                yield bytes(speech)
                speech.clear()
    if speech:
        yield bytes(speech)


def _hear(samples: bytes, stopped: Callable[[], bool]) -> str:
    # A fresh decoder: one that has heard others before would adapt, and answer differently.
    decoder = Decoder(loglevel="FATAL")
    decoder.start_utt()
    for start in range(0, len(samples), _CHUNK_BYTES):
        if stopped():
            raise Stopped
        decoder.process_raw(samples[start : start + _CHUNK_BYTES])
    decoder.end_utt()
    hypothesis = decoder.hyp()
    return str(hypothesis.hypstr).strip() if hypothesis is not None else ""


def _sentence(text: str) -> str:
    text = re.sub(r"\bi\b", "I", text)
    return f"{text[0].upper()}{text[1:]}."
