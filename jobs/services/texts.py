"""Text from outside, made fit for every database's columns.

Guarantees: whatever is given can be stored. Leaves to others: what the text is for.
"""

#: Characters kept of an error's message and code, for the client.
ERROR_MESSAGE_CHARACTERS = 4000
ERROR_CODE_CHARACTERS = 64


def storable(text: str) -> str:
    """Give text every database can keep: NUL and lone surrogates become replacement signs."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()
