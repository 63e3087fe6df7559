"""What came of asking another program, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from fastrank.report.drawing import Grid, Report, terminal

if TYPE_CHECKING:
    from fastrank.verification.differential import Finding, Verification

UNEXPLAINED = "unexplained"


def verification_text(verification: Verification, *, stream: TextIO | None = None) -> str:
    """The outcome in a sentence, then the values that differ, by reason and metric; ends in no line break."""
    by_reason: dict[str | None, list[Finding]] = {}
    for finding in verification.findings:
        by_reason.setdefault(finding.reason, []).append(finding)
    grids = [_grid(verification.peer, reason, findings) for reason, findings in by_reason.items()]
    return terminal(Report(grids, [], verification.notes, [verification.sentence]), stream).rstrip("\n")


def _grid(peer: str, reason: str | None, findings: list[Finding]) -> Grid:
    n = sum(finding.n_values for finding in findings)
    title = f"{reason or UNEXPLAINED} ({n:,} {'value' if n == 1 else 'values'})"
    rows = []
    for finding in findings:
        query, theirs, ours = finding.example
        rows.append([finding.metric, f"{finding.n_values:,}", f"{finding.largest:.4g}", query, f"{theirs:.6f}", f"{ours:.6f}"])
    return Grid(title, ["metric", "values", "largest difference", "in query", peer, "fastrank"], rows)
