"""A real spoken recording to try speech recognition on.

Guarantees: a WAV file of a person reading two sentences, and the words that were read. Leaves to
others: serving and recognising it. Origin and licence: `LICENSE.md`.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRecording:
    """One shipped recording."""

    file: str
    #: What the speaker reads; a recogniser will hear some of it differently.
    transcript: str
    seconds: float

    @property
    def path(self) -> Path:
        """The file itself."""
        return FOLDER / self.file


RECORDING = DemoRecording(
    file="dashwood.wav",
    transcript=(
        "He was not an ill-disposed young man. Had he married a more amiable woman, he might have "
        "been made still more respectable than he was."
    ),
    seconds=9.34,
)
