"""The command: ``python -m benchmarks report`` or ``smoke``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks import report
from benchmarks.data import FULL, QUICK, TINY
from benchmarks.peers import why_absent
from benchmarks.rows import ROWS


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 when every comparison agreed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure fastrank against other programs.")
    commands = parser.add_subparsers(dest="command", required=True)
    measured = commands.add_parser("report", help="measure the table, write its JSON, and rewrite the README's tables and plots")
    measured.add_argument("--rows", nargs="+", choices=ROWS, metavar="NAME", help=f"only these, the others as they were: {', '.join(ROWS)}")
    measured.add_argument("--quick", action="store_true", help="a quarter of the large shapes, few rounds; writes only where it is told to")
    measured.add_argument("--publish", action="store_true", help="with --quick: write the repository's JSON, tables and plots all the same")
    measured.add_argument("--large", action="store_true", help="also 100 million rows and documents")
    measured.add_argument("--out", type=Path, metavar="DIR", help="write everything there, and leave the repository as it is")
    tested = commands.add_parser("smoke", help="only check that all sides agree, on tiny shapes")
    tested.add_argument("--rows", nargs="+", choices=ROWS, metavar="NAME", help="only these")
    given = parser.parse_args(arguments)
    rows = [ROWS[name] for name in given.rows or ROWS]
    console = Console()
    if given.command == "smoke":
        with tempfile.TemporaryDirectory() as folder:
            failures = report.smoke(rows, replace(TINY, folder=Path(folder)), console)
        console.print(f"{len(failures)} comparisons do not agree" if failures else "all agree", highlight=False)
        return 1 if failures else 0
    setting = QUICK if given.quick else FULL
    if given.large:
        setting = replace(setting, large=True, most=10**8)
    writes = given.publish or not given.quick
    places = report.Places.inside(given.out) if given.out else report.Places() if writes else None
    if places is not None and (reason := why_absent("matplotlib")) is not None:
        parser.error(f"the plots need matplotlib: {reason}")
    if setting.divisor > 1:
        console.print(
            f"{setting.name}: one part in {setting.divisor} of the large shapes. The marks are those of the whole.", highlight=False
        )
    everything = report.run(rows, setting, places, keep=given.rows is not None, console=console)
    return 1 if report.unequal(everything) else 0


if __name__ == "__main__":
    sys.exit(main())
