"""What LambdaRank leaves open, and what LightGBM and XGBoost chose."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from fastrank.convention import one_of
from fastrank.errors import InputError
from fastrank.gains import Discount, Gain, as_discount, as_gain, rises
from fastrank.training.pairs import METRICS

PAIRS = ("topk", "all", "sampled")
GROUP_NORMS = ("none", "log2", "mean")

# XGBoost keeps every second derivative of the logistic loss above this.
XGBOOST_FLOOR = 1e-16

PRESETS: dict[str, Mapping[str, Any]] = {
    "lightgbm": {"k": 30, "score_norm": True, "group_norm": "log2"},
    "xgboost": {"k": 32, "score_norm": True, "group_norm": "log2", "hess_scale": 2.0},
}


class LambdaChoices(TypedDict, total=False):
    """What a caller may choose; None is as good as leaving it out."""

    metric: str | None
    gain: Any
    discount: Any
    k: int | None
    ideal_k: int | None
    rel: float | None
    max_label: float | None
    sigma: float | None
    score_norm: bool | None
    group_norm: str | None
    hess_scale: float | None
    pairs: str | None
    n_pairs: int | None
    seed: int | None


@dataclass(frozen=True)
class LambdaOptions:
    """The choices of `fastrank.training.lambda_gradients`, checked; its docstring says what each means."""

    metric: str = "ndcg"
    gain: Gain = "exp2"
    discount: Discount = "log2"
    k: int | None = None
    ideal_k: int | None = None
    rel: float = 1.0
    max_label: float = 4.0
    sigma: float = 1.0
    score_norm: bool = False
    group_norm: str = "none"
    hess_scale: float = 1.0
    hessian_floor: float = 0.0
    pairs: str = "all"
    n_pairs: int = 1
    seed: int = 0
    preset: str | None = None

    @property
    def cost_slope(self) -> float:
        """The loss of a pair is log(1 + exp(cost_slope x difference of scores)). XGBoost counts the chance of the wrong order."""
        return self.sigma if self.preset == "xgboost" else -self.sigma


def lambda_options(preset: str | None, given: Mapping[str, Any]) -> LambdaOptions:
    """Options from what a caller gave; None is what the preset chose, else the plain formula."""
    unknown = sorted(given.keys() - LambdaChoices.__annotations__.keys())
    if unknown:
        raise TypeError(f"{unknown[0]!r} is no option of lambda_gradients; its options are {', '.join(LambdaChoices.__annotations__)}")
    chosen = {name: value for name, value in given.items() if value is not None}
    if preset is not None:
        one_of("preset", preset, tuple(PRESETS))
    preset_choices = dict({} if preset is None else PRESETS[preset])
    if chosen.get("pairs", "topk") != "topk":
        preset_choices.pop("k", None)
    if chosen.get("pairs") == "sampled" and preset == "xgboost":
        preset_choices["group_norm"] = "mean"
    merged = {**preset_choices, **chosen}
    merged.setdefault("pairs", "all" if merged.get("k") is None else "topk")
    if preset == "xgboost":
        merged["hessian_floor"] = XGBOOST_FLOOR
    merged["gain"], merged["discount"] = as_gain(merged.get("gain", "exp2")), as_discount(merged.get("discount", "log2"))
    options = LambdaOptions(preset=preset, **merged)
    _check(options)
    if options.ideal_k is None and options.k is not None:
        options = dataclasses.replace(options, ideal_k=options.k)
    return options


def _check(options: LambdaOptions) -> None:
    one_of("metric", options.metric, METRICS)
    one_of("pairs", options.pairs, PAIRS)
    one_of("group_norm", options.group_norm, GROUP_NORMS)
    for name in ("k", "ideal_k", "n_pairs"):
        value = getattr(options, name)
        if value is not None and not (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
            raise InputError(f"{name} must be a whole number from 1 up, not {value!r}.")
    for name in ("sigma", "hess_scale", "max_label"):
        value = getattr(options, name)
        if not (isinstance(value, int | float) and 0 < value < math.inf):
            raise InputError(f"{name} must be a number above 0, not {value!r}.")
    if not (isinstance(options.seed, int) and 0 <= options.seed < 1 << 64):
        raise InputError(f"seed must be a whole number from 0 to 2^64 - 1, not {options.seed!r}.")
    if options.pairs == "topk" and options.k is None:
        raise InputError("pairs='topk' needs k=, the rank that one of a pair must reach; for every pair give pairs='all'.")
    if options.pairs != "topk" and options.k is not None:
        raise InputError(
            f"k says which pairs count under pairs='topk', and nothing under pairs={options.pairs!r}. For the ideal give ideal_k=."
        )
    if (options.group_norm == "mean") and options.pairs != "sampled":
        raise InputError(
            "group_norm='mean' divides by the partners drawn for a document: it needs pairs='sampled'. Else give 'log2' or 'none'."
        )
    if not rises(options.gain):
        raise InputError("gain must not fall as labels rise: the pairs are of unlike gain, and the larger is the one to put first.")
