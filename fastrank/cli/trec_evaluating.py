"""`fastrank trec_eval`."""

from __future__ import annotations

import click


@click.command(
    "trec_eval",
    short_help="trec_eval's command line and output.",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def trec_eval(arguments: tuple[str, ...]) -> int:
    """Judge a TREC run with trec_eval's flags, output and exit codes: fastrank trec_eval -h tells them all."""
    from fastrank.compat.trec_output import main

    return main(arguments, lambda output: click.echo(output, nl=False), lambda line: click.echo(line, nl=False, err=True))
