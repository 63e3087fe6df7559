"""The one exception for input that cannot be judged."""

from __future__ import annotations


class InputError(ValueError):
    """What was given breaks a rule. The message is one line: the argument, the rule, the place and the cure."""
