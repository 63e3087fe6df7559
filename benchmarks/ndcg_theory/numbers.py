"""Lists of ten million documents beside the exact expectations, and how the gap to the limit shrinks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastrank import analysis

# ybar(s) = 0.1 + 0.6 s. Discount, share of the list, limit, and the expectation at ten million documents (docs of the study: source).
CASES = (
    ("power:0.5", None, 0.790569, 0.790602),
    ("zipf", None, 0.7, 0.7026),
    ("log2", 0.2, 0.64, 0.642451),
    ("log2", None, 1.0, 0.9640),
)
MANY = 10_000_000
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def ybar(s: np.ndarray) -> np.ndarray:
    """The chance that the document at quantile s is relevant."""
    return 0.1 + 0.6 * s


@dataclass(frozen=True)
class Case:
    """One discount: at ten million documents the simulated mean and its standard error, the expectation, the limit, the fit of gaps."""

    discount: str
    k_share: float | None
    mean: float
    standard_error: float
    expected: float
    limit: float
    gap: float
    rate: str
    slope: float
    explained: float

    @property
    def errors_off(self) -> float:
        """How many standard errors the mean is from the expectation; the published digits count as exact to half of the last."""
        digits = 0.5e-6 if self.expected in (0.790602, 0.642451) else 0.5e-4
        return max(0.0, abs(self.mean - self.expected) - digits) / self.standard_error


def measure(n_lists: int, seed: int = 0) -> list[Case]:
    """All cases, so many lists of ten million documents each, and the gaps at smaller sizes for the fit."""
    found = []
    for discount, share, limit, expected in CASES:
        at = analysis.simulate_gap(discount, ybar, [MANY], k_share=share, n_lists=n_lists, seed=seed)
        fit = analysis.simulate_gap(discount, ybar, SIZES, k_share=share, n_lists=100, seed=seed)
        assert abs(at.limit - limit) < 5e-7
        values = (float(at.mean[0]), float(at.standard_error[0]), expected, limit, float(at.gap[0]))
        found.append(Case(discount, share, *values, fit.rate, fit.slope, fit.explained))
    return found
