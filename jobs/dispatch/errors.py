"""The errors of the dispatch intent; all are the programmer's to fix, none is retried.

```
DispatchError           root
├─ GuardedColumn        a column of the protocol was about to be written past the protocol
├─ IncompleteMapping    a model does not say what its statuses mean
└─ NotInstalled         the row carries no intent (it is older than the mixin)
```
"""


class DispatchError(Exception):
    """The dispatch protocol was used wrongly."""

    #: Stable identifier, safe to branch on.
    code = "dispatch_error"


class GuardedColumn(DispatchError):
    """This column changes only through the dispatch protocol."""

    code = "guarded_column"

    def __init__(self, model: str, names: list[str]) -> None:
        self.names = names
        super().__init__(
            f"{model}: {', '.join(names)} may only be written by install, new_round, "
            "new_generation, cancel or fenced_update; a write past them could bring an old round "
            "back"
        )


class IncompleteMapping(DispatchError):
    """The model lacks a declaration the protocol needs; the message names it."""

    code = "incomplete_mapping"


class NotInstalled(DispatchError):
    """The row carries no dispatch intent, so it has no round to act on."""

    code = "not_installed"
