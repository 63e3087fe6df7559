"""Click logs: rates, position propensities, relevance and the value of a new ranker, from what users clicked.

Names are resolved when they are first used, as in the package itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastrank._lazy import attributes

if TYPE_CHECKING:
    from fastrank.clicks.counterfactual import Counterfactual as Counterfactual
    from fastrank.clicks.counterfactual import evaluate as evaluate
    from fastrank.clicks.design import SwapSample as SwapSample
    from fastrank.clicks.design import swap_sample as swap_sample
    from fastrank.clicks.fitting import fit as fit
    from fastrank.clicks.interleaving import Interleaving as Interleaving
    from fastrank.clicks.interleaving import interleave_score as interleave_score
    from fastrank.clicks.likelihood import Probabilities as Probabilities
    from fastrank.clicks.likelihood import Score as Score
    from fastrank.clicks.likelihood import probabilities as probabilities
    from fastrank.clicks.likelihood import score as score
    from fastrank.clicks.log import ClickLog as ClickLog
    from fastrank.clicks.models import ClickModel as ClickModel
    from fastrank.clicks.placement import Placement as Placement
    from fastrank.clicks.placement import rank_in as rank_in
    from fastrank.clicks.propensities import Propensity as Propensity
    from fastrank.clicks.propensities import SwapStrata as SwapStrata
    from fastrank.clicks.propensities import propensity as propensity
    from fastrank.clicks.propensities import swap_strata as swap_strata
    from fastrank.clicks.rates import Rate as Rate
    from fastrank.clicks.rates import ctr as ctr
    from fastrank.clicks.rates import session_metrics as session_metrics
    from fastrank.clicks.relevances import Relevance as Relevance
    from fastrank.clicks.relevances import relevance as relevance
    from fastrank.clicks.simulation import simulate as simulate
    from fastrank.clicks.summaries import Summary as Summary

# Where each public name is defined.
_HOMES = {
    "ClickLog": "log",
    **dict.fromkeys(("Propensity", "SwapStrata", "propensity", "swap_strata"), "propensities"),
    **dict.fromkeys(("Rate", "ctr", "session_metrics"), "rates"),
    **dict.fromkeys(("Relevance", "relevance"), "relevances"),
    **dict.fromkeys(("Placement", "rank_in"), "placement"),
    **dict.fromkeys(("Interleaving", "interleave_score"), "interleaving"),
    **dict.fromkeys(("SwapSample", "swap_sample"), "design"),
    **dict.fromkeys(("Counterfactual", "evaluate"), "counterfactual"),
    "ClickModel": "models",
    "fit": "fitting",
    **dict.fromkeys(("Probabilities", "Score", "probabilities", "score"), "likelihood"),
    "simulate": "simulation",
    "Summary": "summaries",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = attributes(__name__, _HOMES)
