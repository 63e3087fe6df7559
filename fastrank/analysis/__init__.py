"""Which metric, cutoff and discount can tell systems apart: curves over the number of documents, their limits, and what follows.

Names are resolved when they are first used, as in the package itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastrank._lazy import attributes

if TYPE_CHECKING:
    from fastrank.analysis.cutoffs import CutoffChoice as CutoffChoice
    from fastrank.analysis.cutoffs import choose_k as choose_k
    from fastrank.analysis.discounting import DiscountCheck as DiscountCheck
    from fastrank.analysis.discounting import check_discount as check_discount
    from fastrank.analysis.discounting import discount_table as discount_table
    from fastrank.analysis.limits import Gap as Gap
    from fastrank.analysis.limits import limit as limit
    from fastrank.analysis.limits import limit_interval as limit_interval
    from fastrank.analysis.limits import simulate_gap as simulate_gap
    from fastrank.analysis.prefixes import PrefixCurve as PrefixCurve
    from fastrank.analysis.prefixes import prefix_curve as prefix_curve
    from fastrank.analysis.quantiles import RelevanceCurve as RelevanceCurve
    from fastrank.analysis.quantiles import relevance_curve as relevance_curve
    from fastrank.analysis.telling import Distinction as Distinction
    from fastrank.analysis.telling import Distinctions as Distinctions
    from fastrank.analysis.telling import distinguish as distinguish

# Where each public name is defined.
_HOMES = {
    **dict.fromkeys(("CutoffChoice", "choose_k"), "cutoffs"),
    **dict.fromkeys(("DiscountCheck", "check_discount", "discount_table"), "discounting"),
    **dict.fromkeys(("Gap", "limit", "limit_interval", "simulate_gap"), "limits"),
    **dict.fromkeys(("PrefixCurve", "prefix_curve"), "prefixes"),
    **dict.fromkeys(("RelevanceCurve", "relevance_curve"), "quantiles"),
    **dict.fromkeys(("Distinction", "Distinctions", "distinguish"), "telling"),
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = attributes(__name__, _HOMES)
