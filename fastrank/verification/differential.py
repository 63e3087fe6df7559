"""`verify`: the same numbers asked of another program, and every difference with its reason."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fastrank.comparison.choices import Setting
from fastrank.convention import conventions, one_of
from fastrank.errors import InputError
from fastrank.evaluation import to_json
from fastrank.metrics.grammar import parse_metric
from fastrank.verification.list_peers import lightgbm_peer, sklearn_peer, xgboost_peer
from fastrank.verification.peers import Answers, Peer, ir_measures_peer, pytrec_eval_peer, ranx_peer, trec_eval_peer
from fastrank.verification.query_sets import QuerySet, merged, random_query_set, read_query_set
from fastrank.verification.reasons import find_reasons, is_same

PEERS: dict[str, Callable[[], Peer]] = {
    "pytrec_eval": pytrec_eval_peer,
    "ir_measures": ir_measures_peer,
    "ranx": ranx_peer,
    "sklearn": sklearn_peer,
    "lightgbm": lightgbm_peer,
    "xgboost": xgboost_peer,
    "trec_eval": trec_eval_peer,
}
UNDEFINED_ORDER = "order of equal scores: undefined there; the value is that of one order"


@dataclass(frozen=True)
class Finding:
    """Values of one metric that differ for one reason (None: unexplained). `example`: a query, its value there, and ours."""

    metric: str
    ours: str
    reason: str | None
    n_values: int
    largest: float
    example: tuple[str, float, float]


@dataclass(frozen=True)
class Verification:
    """What came of asking another program.

    Attributes: `peer`, `version` and `convention`; `source`, what was asked about; `n_sets`, `n_queries`, `n_metrics` and `n_values`,
    the values compared; `findings`, the differences by metric and reason, unexplained ones first; `notes`.
    """

    peer: str
    version: str
    convention: str
    source: str
    n_sets: int
    n_queries: int
    n_metrics: int
    n_values: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def n_differing(self) -> int:
        """Values that differ by more than rounding."""
        return sum(finding.n_values for finding in self.findings)

    @property
    def n_unexplained(self) -> int:
        """Those of them that no choice explains."""
        return sum(finding.n_values for finding in self.findings if finding.reason is None)

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        asked = f"{self.peer} {self.version} against the convention {self.convention} on {self.source}"
        compared = f"{self.n_values:,} values of {self.n_metrics} metrics compared"
        if not self.n_differing:
            return f"{asked}: {compared}, none differs."
        rest = f"all explained by {self._kinds()}" if not self.n_unexplained else f"{self.n_unexplained:,} of them unexplained"
        return f"{asked}: {compared}, {self.n_differing:,} differ, {rest}."

    def _kinds(self) -> str:
        n = len({finding.reason for finding in self.findings})
        return "one reason" if n == 1 else f"{n} reasons"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts and lists."""
        names = ("peer", "version", "convention", "source", "n_sets", "n_queries", "n_metrics", "n_values", "n_differing", "n_unexplained")
        return {
            **{name: getattr(self, name) for name in names},
            "findings": [vars(finding) | {"example": list(finding.example)} for finding in self.findings],
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        """`to_dict` as strict JSON; NaN is null."""
        return to_json(self.to_dict())


def verify(
    against: str,
    *,
    n_sets: int = 100,
    seed: int = 0,
    qrels: Any = None,
    run: Any = None,
    binary: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verification:
    """Ask another program for the metrics that it has, on random query sets or on the given judgements and run, and compare.

    Parameters
    ----------
    against
        "pytrec_eval", "ir_measures", "ranx", "sklearn", "lightgbm", "xgboost" or "trec_eval".
    n_sets, seed
        How many random query sets, and which: judgements and a run of two to six queries each.
    qrels, run
        TREC files to compare on in their place.
    binary
        Where trec_eval is, if not on PATH.
    progress
        Called with the number of values after each query set.

    Returns
    -------
    Verification
        Counts, and per metric and reason the values that differ. A difference is explained where one or two choices, made otherwise
        here, give the other program's value of that query.

    Errors: `InputError`, one line, where the program is not installed, with the command that installs it, and where it gives no value.
    """
    make = PEERS[one_of("against", against, tuple(PEERS))]
    peer = trec_eval_peer(binary) if make is trec_eval_peer else make()
    if run is None:
        traits = {"ties": not peer.untied, "negative": peer.negative, "single": False}
        sets = [random_query_set(seed, place, **traits) for place in range(n_sets)]
        source = f"{n_sets:,} random query sets (seed {seed})"
    else:
        sets, source = [read_query_set(qrels, run)], "the given qrels and run"
    sets = [dataclasses.replace(each, as_lists=peer.as_lists) for each in sets]
    answers: Answers = {}
    for each in sets:
        told = peer.ask(each)
        for name, values in told.items():
            answers.setdefault(name, {}).update(values)
        if progress is not None:
            progress(sum(map(len, told.values())))
    if not any(answers.values()):
        raise InputError(f"{peer.name} gave no value on {source}, so that nothing can be compared. Check that judgements and run match.")
    return compare_answers(peer, merged(sets), answers, source, len(sets))


def compare_answers(peer: Peer, queries: QuerySet, answers: Answers, source: str, n_sets: int) -> Verification:
    """Compare what a program answered with our values, query by query."""
    findings: list[Finding] = []
    notes = list(peer.remarks)
    n_values = 0
    asked = {name: values for name, values in answers.items() if values}
    for name, theirs in asked.items():
        part = queries.part(theirs)
        setting, ours = _ours(peer, part, name)
        n_values += len(theirs)
        tolerance = peer.rounded.get(name, peer.tolerance)
        away = {query: value for query, value in theirs.items() if not is_same(ours[query], value, tolerance)}
        if away:
            findings += _explained(peer, setting, part, name, away, ours)
    if not_asked := [name for name in peer.metrics if name not in asked]:
        notes.append(f"no values there for {', '.join(not_asked)}.")
    findings.sort(key=lambda finding: finding.reason is not None)
    answered = {query for values in asked.values() for query in values}
    return Verification(
        peer.name, peer.version, peer.convention, source, n_sets, len(answered), len(asked), n_values, tuple(findings), tuple(notes)
    )


def _ours(peer: Peer, queries: QuerySet, name: str) -> tuple[Setting, dict[str, float]]:
    convention = conventions[peer.convention]
    setting = Setting(parse_metric(peer.metrics[name], convention), convention)
    return setting, queries.values(setting.metric, convention)


def _explained(peer: Peer, setting: Setting, queries: QuerySet, name: str, away: dict[str, float], ours: dict[str, float]) -> list[Finding]:
    """The differing values of one metric, by reason."""
    tolerance = peer.rounded.get(name, peer.tolerance)
    reasons: dict[str, str | None] = dict.fromkeys(away)
    if peer.untied:
        part = queries.part(away)
        bounds = part.evaluate([setting.metric], setting.convention, bounds=True).bounds
        assert bounds is not None
        for place, query in enumerate(part.queries):
            if bounds.low[place, 0] - tolerance <= away[query] <= bounds.high[place, 0] + tolerance:
                reasons[query] = UNDEFINED_ORDER
    left = {query: value for query, value in away.items() if reasons[query] is None}
    for query, chosen in find_reasons(setting, queries, left, tolerance).items():
        reasons[query] = " and ".join(switch.words for switch in chosen)
    by_reason: dict[str | None, list[str]] = {}
    for query, reason in reasons.items():
        by_reason.setdefault(reason, []).append(query)
    found = []
    for reason, members in by_reason.items():
        gaps = {query: abs(away[query] - ours[query]) for query in members}
        # A value against none is as far as can be.
        most = max(members, key=lambda query: gaps[query] if gaps[query] == gaps[query] else float("inf"))
        found.append(Finding(name, str(setting.metric), reason, len(members), gaps[most], (most, away[most], ours[most])))
    return found
