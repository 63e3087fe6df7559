"""A click model in brief: its parameters by rank, and how well it foretells a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.clicks.likelihood import Score, score
from fastrank.clicks.outcome import Outcome

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog
    from fastrank.clicks.models import ClickModel


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Outcome):
    """What `ClickModel.summary` gives.

    Attributes
    ----------
    model
        Its name.
    n_pairs
        Documents, or pairs of query and document, that it has parameters for.
    exam, cont
        As in `ClickModel`, or None.
    log_posterior
        The objective at these parameters; NaN for a model written by hand.
    n_iterations, converged
        As in `ClickModel`.
    score
        The `Score` of a log.
    """

    model: str
    n_pairs: int
    exam: np.ndarray | None
    cont: np.ndarray | None
    log_posterior: float
    n_iterations: int
    converged: bool
    score: Score

    def by_rank(self) -> dict[str, np.ndarray]:
        """The parameters that ranks have, by name. Of ubm: nothing clicked yet, and the document above clicked."""
        if self.model == "ubm" and self.exam is not None:
            above = np.append(np.nan, np.diagonal(self.exam[1:, 1:])) if len(self.exam) else np.zeros(0)
            return {"exam, no click": self.exam[:, 0], "exam, click above": above}
        kinds = {"rctr": "exam", "pbm": "exam", "dcm": "cont"}
        return {kind: getattr(self, kind) for name, kind in kinds.items() if name == self.model}

    def columns(self) -> dict[str, Any]:
        """By position: the log's sessions that reach it, perplexity, and the parameters of that rank, NaN below the model's last one."""
        n = len(self.score.n_at)
        ranks = {name: np.append(values, np.full(max(n - len(values), 0), np.nan))[:n] for name, values in self.by_rank().items()}
        return self.score.columns() | ranks


def summary(model: ClickModel, log: ClickLog, threads: int | None) -> Summary:
    """See `ClickModel.summary`."""
    return Summary(
        model=model.name,
        n_pairs=0 if model.attr is None else len(model.attr),
        exam=model.exam,
        cont=model.cont,
        log_posterior=float(model.objective[-1]) if len(model.objective) else float("nan"),
        n_iterations=model.n_iterations,
        converged=model.converged,
        score=score(model, log, threads=threads),
    )
