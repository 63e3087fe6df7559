"""ranx's `Report`: what `compare` found, as a table, LaTeX, a dict or a data frame."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from fastrank.io.atomic import write_text

_LABELS = {
    "hits": "Hits",
    "hit_rate": "Hit Rate",
    "precision": "P",
    "recall": "Recall",
    "f1": "F1",
    "r-precision": "R-Prec",
    "mrr": "MRR",
    "map": "MAP",
    "dcg": "DCG",
    "dcg_burges": "DCG Burges",
    "ndcg": "NDCG",
    "ndcg_burges": "NDCG Burges",
    "bpref": "BPref",
}
_TESTS = {"fisher": "Fisher's randomization test", "student": "paired Student's t-test", "tukey": "Tukey's HSD test"}
_LETTERS, _RAISED = "abcdefghijklmnopqrstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖ۹ʳˢᵗᵘᵛʷˣʸᶻ"


class PairDict(MutableMapping[Any, Any]):
    """A dict by pairs, whose order does not matter."""

    def __init__(self, given: Any = None) -> None:
        self._map: dict[frozenset[str], Any] = {}
        self.update(given or {})

    def __getitem__(self, key: Iterable[str]) -> Any:
        return self._map[frozenset(key)]

    def __setitem__(self, key: Iterable[str], value: Any) -> None:
        self._map[frozenset(key)] = value

    def __delitem__(self, key: Iterable[str]) -> None:
        del self._map[frozenset(key)]

    def __iter__(self) -> Iterator[frozenset[str]]:
        return iter(self._map)

    def __len__(self) -> int:
        return len(self._map)


def _letters(place: int, alphabet: str) -> str:
    """a ... z, aa, ab, ...: a name for each of any number of systems."""
    rest, last = divmod(place, len(alphabet))
    return (_letters(rest - 1, alphabet) if rest else "") + alphabet[last]


@dataclass(repr=False)
class Report:
    """The outcome of a comparison.

    Attributes: `results[model][metric]`, means; `comparisons[model, other][metric]`, p_value and significant; `win_tie_loss[model,
    other][metric]`, numbers of queries, W, T and L. A letter behind a value names a system that is worse, significantly so.
    """

    model_names: list[str]
    results: dict[str, dict[str, float]]
    comparisons: PairDict
    metrics: list[str]
    max_p: float
    win_tie_loss: dict[tuple[str, str], dict[str, dict[str, int]]] = field(default_factory=dict)
    rounding_digits: int = 3
    show_percentages: bool = False
    stat_test: str = "student"

    def format_score(self, score: float) -> str:
        """A value as it is shown."""
        if self.show_percentages:
            return f"{score * 100:.{max(0, self.rounding_digits - 2)}f}"
        return f"{score:.{self.rounding_digits}f}"

    def get_metric_label(self, m: str) -> str:
        """The heading of a metric's column: NDCG@10 of ndcg@10."""
        head, minus, level = m.partition("-l")
        name, at, cutoff = head.partition("@")
        label = f"RBP{name[3:]}" if name.startswith("rbp") else _LABELS[name]
        return label + at + cutoff + minus + level

    def get_stat_test_label(self, stat_test: str) -> str:
        """The name of a test."""
        return _TESTS[stat_test]

    def _worse(self, model: str, metric: str) -> list[int]:
        """Places of the systems that are worse than one, significantly so."""
        return [
            place
            for place, other in enumerate(self.model_names)
            if model != other
            and self.comparisons[model, other][metric]["significant"]
            and self.results[model][metric] > self.results[other][metric]
        ]

    def to_table(self) -> str:
        """A text table."""
        rows = [["#", "Model", *map(self.get_metric_label, self.metrics)]]
        for place, model in enumerate(self.model_names):
            raised = ["".join(_letters(other, _RAISED) for other in self._worse(model, metric)) for metric in self.metrics]
            scores = [self.format_score(self.results[model][metric]) + marks for metric, marks in zip(self.metrics, raised, strict=True)]
            rows.append([_letters(place, _LETTERS), model, *scores])
        # The least width of a column is that of tabulate: its heading and two.
        widths = [
            max(len(rows[0][c]) + 2, *(len(row[c]) for row in rows[1:])) if len(rows) > 1 else len(rows[0][c]) + 2
            for c in range(len(rows[0]))
        ]
        rows.insert(1, ["-" * width for width in widths])
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)

    def to_latex(self) -> str:
        """A LaTeX table: the best value of each metric in boldface, superscripts for significant differences."""
        places = list(enumerate(self.model_names))
        best = {metric: max((self.results[model][metric], -place) for place, model in places) for metric in self.metrics}
        headings = "".join(f"\n& \\textbf{{{self.get_metric_label(metric)}}}" for metric in self.metrics)
        rows = []
        for place, model in places:
            cells = [f"{_letters(place, _LETTERS)} &\n{model} &"]
            for metric in self.metrics:
                score = self.format_score(self.results[model][metric])
                shown = f"\\textbf{{{score}}}" if best[metric] == (self.results[model][metric], -place) else score
                worse = self._worse(model, metric)
                rest = [other for other in range(len(self.model_names)) if other != place and other not in worse]
                above, hidden = ("".join(_letters(other, _LETTERS) for other in those) for those in (worse, rest))
                cells.append(f"{shown}$^{{{above}}}$\\hphantom{{$^{{{hidden}}}$}} &")
            rows.append("\n".join(cells).removesuffix("&") + "\\\\")
        body = "\n".join(rows).replace("_", "\\_").replace("$^{}$", "")
        return (
            "========================\n% Add in preamble\n\\usepackage{graphicx}\n\\usepackage{booktabs}\n========================\n\n\n"
            "% To change the table size, act on the resizebox argument `0.8`.\n\\begin{table*}[ht]\n\\centering\n\\caption{\n"
            "Overall effectiveness of the models.\nThe best results are highlighted in boldface.\n"
            f"Superscripts denote significant differences in {self.get_stat_test_label(self.stat_test)} with $p \\le {self.max_p}$.\n}}\n"
            f"\\resizebox{{0.8\\textwidth}}{{!}}{{\n\\begin{{tabular}}{{c|l{'|c' * len(self.metrics)}}}\n\\toprule\n"
            f"\\textbf{{\\#}}\n& \\textbf{{Model}}{headings} \\\\ \n\\midrule\n{body}\n"
            "\\bottomrule\n\\end{tabular}\n}\n\\label{tab:results}\n\\end{table*}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Names of test, metrics and systems, and for each system its scores, comparisons (p) and win_tie_loss."""
        found: dict[str, Any] = {"stat_test": self.stat_test, "metrics": self.metrics, "model_names": self.model_names}
        for model in self.model_names:
            others = [other for other in self.model_names if other != model]
            found[model] = {
                "scores": self.results[model],
                "comparisons": {
                    other: {metric: self.comparisons[model, other][metric]["p_value"] for metric in self.metrics} for other in others
                },
                "win_tie_loss": {other: {metric: self.win_tie_loss[model, other][metric] for metric in self.metrics} for other in others},
            }
        return found

    def to_dataframe(self) -> Any:
        """A pandas DataFrame: a row a system, a column a metric."""
        import pandas as pd

        columns = {metric: [self.results[model][metric] for model in self.model_names] for metric in self.metrics}
        return pd.DataFrame({"model_names": self.model_names, **columns})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` as JSON, whole or not at all. A file that cannot be written is an `InputError`."""
        write_text(path, json.dumps(self.to_dict(), indent=4))

    def print_results(self) -> None:
        """Print the scores as JSON."""
        print(json.dumps(self.results, indent=4))  # noqa: T201  (it is what this does)

    def __repr__(self) -> str:
        return self.to_table()
