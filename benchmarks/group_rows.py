"""The row of judgements by subtopic: the diversity metrics of one run, against ndeval and ir_measures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import fastrank as fr
from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Setting
from benchmarks.peers import why_absent

# ndeval's names and ours.
MEASURES = {
    "alpha-nDCG@20": "alpha_nDCG@20",
    "ERR-IA@20": "ERR_IA@20",
    "NRBP": "NRBP",
    "MAP-IA": "AP_IA",
    "P-IA@20": "P_IA@20",
    "strec@20": "StRecall@20",
}
N_RETRIEVED, N_JUDGED, N_SUBTOPICS = 1000, 300, 8


def subtopics(setting: Setting) -> Iterator[Comparison]:
    """200 queries of 1,000 documents, 300 of them judged for a few of 8 subtopics."""
    qrels, run = _draw(setting.queries(200))
    n = len(run)
    groups = fr.GroupedQrels.from_arrays(*map(list, zip(*qrels, strict=True)))
    ranked = fr.Run.from_arrays(*map(list, zip(*run, strict=True)))

    def ours() -> dict[str, float]:
        return fr.evaluate_run(groups, ranked, list(MEASURES.values()), threads=1).mean()

    def compare(other: Call, library: str, mark: Mark) -> Comparison:
        absent = why_absent(library) or why_absent("pyndeval")

        def difference() -> float:
            mine, theirs = ours(), other.run()
            return max(abs(mine[name] - theirs[name]) for name in mine)

        shape = f"{len(groups)} × {N_RETRIEVED:,}"
        return Comparison(shape, n, len(groups), Call("fastrank", ours, 1), other, mark, difference, absent=absent, once=True)

    yield compare(Call("pyndeval", lambda: _ndeval(qrels, run), 1), "pyndeval", Mark())
    yield compare(Call("ir_measures", lambda: _ir_measures(qrels, run), 1), "ir_measures", Mark(must=5))


def _draw(n_queries: int) -> tuple[list[tuple[str, str, str, int]], list[tuple[str, str, float]]]:
    random = np.random.default_rng(0)
    qrels, run = [], []
    for q in range(n_queries):
        documents = random.permutation(10 * N_RETRIEVED)[:N_RETRIEVED].tolist()
        for document in random.permutation(documents)[:N_JUDGED].tolist():
            chosen = random.permutation(N_SUBTOPICS)[: random.integers(1, 4)].tolist()
            qrels += [(f"q{q}", str(subtopic), f"d{document}", int(random.random() < 0.3)) for subtopic in chosen]
        run += [(f"q{q}", f"d{document}", float(-place)) for place, document in enumerate(documents)]
    return qrels, run


def _ndeval(qrels: list[Any], run: list[Any]) -> dict[str, float]:
    import pyndeval

    found = pyndeval.RelevanceEvaluator(qrels, list(MEASURES)).evaluate(run).values()
    return {ours: float(np.mean([each[theirs] for each in found])) for theirs, ours in MEASURES.items()}


def _ir_measures(qrels: list[Any], run: list[Any]) -> dict[str, float]:
    import ir_measures
    from ir_measures.util import Qrel, ScoredDoc

    measures = {name: ir_measures.parse_measure(name) for name in MEASURES.values()}
    judged = [Qrel(query, document, label, subtopic) for query, subtopic, document, label in qrels]
    found = ir_measures.calc_aggregate(list(measures.values()), judged, [ScoredDoc(*row) for row in run])
    return {name: found[measure] for name, measure in measures.items()}
