"""The one exception for input that cannot be judged."""

from __future__ import annotations

# What is quoted of the input may have any length; a message that names the rule, the place and the cure fits in this.
LONGEST = 1200


def one_line(message: str) -> str:
    """A message without what would break its line or steer a terminal, cut in the middle where it quotes too much."""
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 2 :]}"
    if message.isprintable():
        return message
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in message)


class InputError(ValueError):
    """What was given breaks a rule. The message is one line: the argument, the rule, the place and the cure."""

    def __init__(self, message: str) -> None:
        # What a message quotes, an id or the name of a column, may hold line breaks.
        super().__init__(one_line(message))
