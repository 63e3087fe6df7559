"""The one exception for input that cannot be judged."""

from __future__ import annotations


class InputError(ValueError):
    """What was given breaks a rule. The message is one line: the argument, the rule, the place and the cure."""

    def __init__(self, message: str) -> None:
        # What a message quotes, an id or the name of a column, may hold line breaks.
        super().__init__(message.replace("\r", "\\r").replace("\n", "\\n"))
