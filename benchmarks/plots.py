"""Two pictures of the curves: time per document against list length, and time against the number of documents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.comparison import Result

Points = dict[str, dict[float, float]]

THEMES = {
    "light": {"ink": "#1f2328", "grid": "#d1d9e0", "ours": ("#0969da", "#1a7f37"), "others": ("#9a6700", "#cf222e", "#8250df", "#59636e")},
    "dark": {"ink": "#d1d7e0", "grid": "#3d444d", "ours": ("#4493f8", "#3fb950"), "others": ("#d29922", "#f85149", "#ab7df8", "#9198a1")},
}
# Below this many documents the fixed cost of a call bends the line.
SLOPE_FROM = 100_000


def draw(everything: dict[str, Any], folder: Path) -> list[tuple[str, str]]:
    """Draw what has been measured, light and dark; the name and the caption of each picture."""
    drawn = []
    for row, name, caption, picture in (
        ("by-length", "time-by-length", "Time per document against list length", _length),
        ("by-documents", "time-by-documents", "Time against number of documents", _documents),
    ):
        if row in everything:
            results = [Result.from_dict(plain) for plain in everything[row]["results"]]
            folder.mkdir(parents=True, exist_ok=True)
            for theme in THEMES:
                _save(picture, results, caption, theme, folder / f"{name}-{theme}.svg")
            drawn.append((name, caption))
    return drawn


def points(results: list[Result], x: Callable[[Result], float], y: Callable[[Result, float], float]) -> Points:
    """Per call the points of its curve; a call that was measured against several others has the median of its figures."""
    found: dict[str, dict[float, list[float]]] = {}
    for result in results:
        for name, figure in ((result.ours, result.ours_figure), (result.other, result.other_figure)):
            if name is not None and figure is not None:
                found.setdefault(name, {}).setdefault(x(result), []).append(y(result, figure))
    return {name: {place: median(values) for place, values in sorted(curve.items())} for name, curve in found.items()}


def slope(curve: dict[float, float]) -> float | None:
    """The exponent of x that the points follow, by least squares on logarithms; None for less than two of them."""
    x, y = (np.log([pair[place] for pair in curve.items() if pair[0] >= SLOPE_FROM]) for place in (0, 1))
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 else None


def _length(axes: Any, results: list[Result]) -> Points:
    axes.set_xlabel("documents in a list")
    axes.set_ylabel("nanoseconds a document")
    return points(results, lambda result: result.n_documents / result.n_queries, lambda result, seconds: seconds / result.n_documents * 1e9)


def _documents(axes: Any, results: list[Result]) -> Points:
    axes.set_xlabel("documents")
    axes.set_ylabel("seconds")
    curves = points(results, lambda result: float(result.n_documents), lambda _, seconds: seconds)
    found = {name: slope(curve) for name, curve in curves.items()}
    return {name if found[name] is None else f"{name}; slope {found[name]:.2f}": curve for name, curve in curves.items()}


def _save(picture: Callable[[Any, list[Result]], Points], results: list[Result], caption: str, theme: str, path: Path) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    colours = THEMES[theme]
    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "fastrank",  # the same picture has the same bytes
        "font.size": 10,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), colours["ink"]),
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
        curves = picture(axes, results)
        ours = [name for name in curves if name.startswith("fastrank")]
        others = [name for name in curves if name not in ours]
        for names, palette, width in ((ours, colours["ours"], 2.5), (others, colours["others"], 1.5)):
            for place, name in enumerate(names):
                axes.plot(*zip(*curves[name].items(), strict=True), "o-", color=palette[place % len(palette)], lw=width, ms=4, label=name)
        axes.set(xscale="log", yscale="log", title=caption)
        axes.grid(color=colours["grid"], lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", frameon=False, fontsize=8)
        figure.savefig(path, transparent=True, metadata={"Date": None})
