"""Flags that several commands share, and what the shell completes them with."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def in_flags(message: str, command: click.Command | None) -> str:
    """A message of the library with its arguments (`ties=`) named as the command's flags (`--ties`); no cure that has no flag."""
    flags = {each.name: each.opts[0] for each in command.params if isinstance(each, click.Option)} if command else {}
    message = re.sub(r", or [^,.:;]*\b(\w+)=(?=[.,])", lambda found: found[0] if found[1] in flags else "", message)
    if "qrels" in flags:
        message = message.replace("call evaluate_run with a file of them or fr.GroupedQrels", "give a file of them with --qrels")
    message = re.sub(r"^[a-z]+_[a-z_]+(?= must )", lambda found: flags.get(found[0], found[0]), message)
    return re.sub(r"\b(\w+)=(True\b|(?![\w'\"\[{(]))", lambda found: flags.get(found[1], found[0]), message)


class FileName(click.Path):
    """The name of a file, which an unset variable in a script leaves empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value:
            self.fail("the name of the file is empty.", param, ctx)
        return super().convert(value, param, ctx)


def standard_input() -> BinaryIO:
    """Standard input, as bytes."""
    if sys.stdin is None:  # closed by the shell: <&-
        raise click.UsageError("standard input (-) is closed. Give a file, or a pipe to read from.", click.get_current_context())
    return sys.stdin.buffer


def complete_metric(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of metric families, of the last one in a comma list."""
    from fastrank.metrics.grammar import list_metrics

    done, comma, begun = incomplete.rpartition(",")
    return [done + comma + info.name for info in list_metrics() if info.name.lower().startswith(begun.lower())]


def complete_convention(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Names of conventions."""
    from fastrank.convention import conventions

    return [name for name in conventions if name.startswith(incomplete)]


def convention_option(default: str | None = "fastrank", note: str = "Default: fastrank.") -> Decorator:
    """What metric names leave open."""
    return click.option(
        "--convention",
        default=default,
        metavar="NAME",
        shell_complete=complete_convention,
        help=f"Whose formulas the names mean; fastrank conventions lists them. {note}",
    )


def ties_option() -> Decorator:
    """The order of equal scores."""
    return click.option(
        "--ties", metavar="RULE", help="Order of equal scores: average, input, worst, best or docid. Default: the convention's."
    )


def no_relevant_option() -> Decorator:
    """The value of a query without anything to find."""
    return click.option(
        "--no-relevant", metavar="RULE", help="Value of a query with nothing to find: zero, one, nan or skip. Default: the convention's."
    )


def depth_option() -> Decorator:
    """Cut the rankings."""
    return click.option("--depth", type=click.IntRange(min=1), metavar="N", help="Cut every ranking to its first N documents.")


def judged_only_option() -> Decorator:
    """Drop unjudged documents."""
    return click.option("--judged-only", is_flag=True, help="Leave unjudged documents out of the rankings.")
