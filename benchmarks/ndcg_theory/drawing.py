"""The four figures of the study, for light and for dark backgrounds."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import numpy as np

from benchmarks.ndcg_theory.study import FIGURES, RANKERS, Curves
from fastrank.report.analysed import finish, line_style
from fastrank.report.plots import colours_of, new_figure

# Points of a line: more would make the files larger and show nothing.
POINTS = 140
THEMES = {"light": False, "dark": True}


def draw(curves: Curves, folder: Path, prefix: str) -> list[Path]:
    """Write {prefix}_{1..4}_{light,dark}.svg and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    sizes = np.unique(np.geomspace(1, curves.n_documents, POINTS).astype(np.int64))
    written = []
    # Text stays text and ids are the same in every run, so that files are small and change only with the numbers.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ndcg_theory"}):
        for place, (metric, words) in enumerate(FIGURES.items(), 1):
            for theme, dark in THEMES.items():
                colours = colours_of(dark)
                figure, (panel,) = new_figure(colours, (6.4, 3.6), [1.0])
                low, high = np.quantile(curves.of(metric), [0.1, 0.9], axis=0)
                for r, ranker in enumerate(RANKERS):
                    style = line_style(r, dark)
                    band = {"color": style["color"], "alpha": 0.15, "linewidth": 0}
                    panel.fill_between(sizes, low[r, sizes - 1], high[r, sizes - 1], **band)
                    panel.plot(sizes, curves.mean(metric)[r, sizes - 1], label=ranker, **style)
                panel.set_ylim(-0.02, 1.02)
                finish(panel, colours, f"Figure {place}: NDCG, {words}", f"first n documents ({curves.name})")
                path = folder / f"{prefix}_{place}_{theme}.svg"
                figure.savefig(path, metadata={"Date": None}, facecolor=colours["page"])
                path.write_text(_smaller(path.read_text()))
                written.append(path)
    return written


def _smaller(svg: str) -> str:
    """Coordinates to a hundredth of a point, and no blanks at the ends of lines."""
    shorter = re.sub(r"(\d\.\d\d)\d+", r"\1", svg)
    return "\n".join(line.rstrip() for line in shorter.splitlines()) + "\n"
