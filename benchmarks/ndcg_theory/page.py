"""The page of the study: its prose, with the numbers of a run put in."""

from __future__ import annotations

from pathlib import Path
from string import Template

from benchmarks.ndcg_theory.numbers import MANY, Case
from benchmarks.ndcg_theory.rankers import LISTNET, RANDOM, RANKSVM
from benchmarks.ndcg_theory.study import FAST, FIGURES, STANDARD, Curves, Row, Study, claims

PROSE = Path(__file__).with_name("page.md")
ABSENT = "The LETOR file was not there in this run."


def page(study: Study, cases: list[Case], images: str) -> str:
    """The page in Markdown; `images` is the folder of the figures as the page sees it."""
    curves = study.curves
    values = {f"figure_{i}": _picture(f"{images}/generated_{i}", words) for i, words in enumerate(FIGURES.values(), 1)}
    for metric, name in zip(FIGURES, ("standard", "root", "fast", "share"), strict=True):
        values[name] = ", ".join(f"{value:.3f}" for value in curves.mean(metric)[:, -1])
        values[f"{name}_spread"] = (
            f"{curves.spread(metric, curves.n_documents // 10).mean():.3f} to {curves.spread(metric, curves.n_documents).mean():.3f}"
        )
    values |= {
        "n": f"{curves.n_documents:,}",
        "n_streams": f"{len(curves.values):,}",
        "limits": _limits(study.rows),
        "cases": _cases(cases),
        "many": f"{MANY:,}",
        "claims": "\n".join(f"- {claim}: {'yes' if holds else '**no**'}" for claim, holds in claims(curves).items()),
        "crossed_fast": f"{100 * curves.share_wrong(FAST, LISTNET, RANKSVM):.0f}%",
        "random_fast": f"{100 * curves.share_wrong(FAST, RANKSVM, RANDOM):.0f}%",
        "last_standard": f"{curves.last_wrong(STANDARD, RANKSVM, RANDOM):,}",
        "last_trained": f"{curves.last_wrong(STANDARD, LISTNET, RANKSVM):,}",
        "real": ABSENT if study.real is None else _real(study.real, images),
    }
    return Template(PROSE.read_text()).substitute(values)


def _picture(path: str, words: str) -> str:
    source = f'<source media="(prefers-color-scheme: dark)" srcset="{path}_dark.svg">'
    return f'<picture>{source}<img alt="NDCG of the first n documents, {words}" src="{path}_light.svg"></picture>'


def _limits(rows: list[Row]) -> str:
    lines = ["| ranker | discount | measured | theory at this n | limit | 95% interval |", "|---|---|---:|---:|---:|---:|"]
    for row in rows:
        span = "" if row.low == row.high else f"{row.low:.3f} to {row.high:.3f}"
        measured = f"{row.measured:.4f} ± {row.standard_error:.4f}"
        lines.append(f"| {row.ranker} | {row.discount} | {measured} | {row.simulated:.4f} | {row.limit:.4f} | {span} |")
    return "\n".join(lines)


def _cases(cases: list[Case]) -> str:
    lines = [
        "| discount | simulated | expected | standard errors off | limit | gap | shrinks as | explained |",
        "|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for case in cases:
        name = case.discount if case.k_share is None else f"{case.discount}, k = {case.k_share:g} n"
        numbers = (
            f"{case.mean:.6f} ± {case.standard_error:.6f} | {case.expected:g} | {case.errors_off:.1f} | {case.limit:g} | {case.gap:+.6f}"
        )
        lines.append(f"| {name} | {numbers} | {case.slope:.3f} × {case.rate} | {100 * case.explained:.2f}% |")
    return "\n".join(lines)


def _real(curves: Curves, images: str) -> str:
    pictures = "\n\n".join(_picture(f"{images}/letor_{i}", words) for i, words in enumerate(FIGURES.values(), 1))
    lines = [
        f"- {words}: " + ", ".join(f"{value:.3f}" for value in curves.mean(metric)[:, -1]) + f" ({LISTNET}, {RANKSVM}, {RANDOM})"
        for metric, words in FIGURES.items()
    ]
    share = 100 * curves.share_wrong(FAST, LISTNET, RANKSVM)
    wrong = f"Under 2^-r RankSVM reaches or passes ListNet somewhere in the second half of {share:.0f}% of the streams."
    return "\n".join([*lines, "", wrong, "", pictures])
