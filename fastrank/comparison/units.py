"""What is drawn at random: a query, or a cluster of queries that belong together. Values become sums per unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from fastrank.evaluation import Evaluation


class Units(NamedTuple):
    """Sums over the queries of each unit: of weight times value, float64[n_columns, n_units], and of the weight, float64[n_units].

    A mean is Σ sums / Σ size. `n_queries` counts the queries in them.
    """

    sums: np.ndarray
    size: np.ndarray
    n_queries: int

    @property
    def n_units(self) -> int:
        """How many there are."""
        return len(self.size)

    @property
    def means(self) -> np.ndarray:
        """The (weighted) mean of each column."""
        return self.sums.sum(axis=1) / self.size.sum()

    @property
    def even(self) -> bool:
        """Whether all units weigh 1, so that the sum of the weights of a resample is known."""
        return bool((self.size == 1.0).all())


def units_of(values: np.ndarray, weights: np.ndarray | None, clusters: np.ndarray | None) -> Units:
    """Units of values, float64[n_columns, n_queries]; `clusters` numbers the queries' clusters, int64[n_queries]."""
    n_queries = values.shape[1]
    size = np.ones(n_queries) if weights is None else weights
    sums = values if weights is None else values * weights
    if clusters is not None:
        _, codes = np.unique(clusters, return_inverse=True)
        n_clusters = int(codes.max(initial=-1)) + 1
        size = np.bincount(codes, size, n_clusters)
        sums = np.array([np.bincount(codes, column, n_clusters) for column in sums]).reshape(len(sums), n_clusters)
    if n_queries and not size.sum() > 0:
        raise InputError("the weights of these queries are all 0, so they have no mean. Give at least one a weight above 0.")
    return Units(np.ascontiguousarray(sums), size, n_queries)


def values_of(evaluation: Evaluation, name: str = "the evaluation") -> np.ndarray:
    """The values of single queries, float64[n_queries, n_metrics]."""
    if evaluation.values is None:
        raise InputError(f"{name} holds means alone, and this needs the value of each query: evaluate with per_query=True.")
    return evaluation.values


def codes_of(column: pa.Array) -> np.ndarray:
    """A number for each distinct value of a column, null one of them."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):  # an Arrow dictionary may hold a value twice
        column = column.cast(column.type.value_type)
    encoded = column.dictionary_encode()
    codes: np.ndarray = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def cluster_codes(by: dict[str, Any], cluster: str | None) -> np.ndarray | None:
    """The clusters that a `by` column tells apart."""
    if cluster is None:
        return None
    if not isinstance(cluster, str) or cluster not in by:
        known = f"they have {', '.join(map(repr, by))}" if by else "they have none"
        raise InputError(f"cluster must name a by= column of the evaluations ({known}), not {cluster!r}. Evaluate with by={cluster!r}.")
    return codes_of(by[cluster])


def part(array: np.ndarray | None, where: Any) -> np.ndarray | None:
    """Some entries of an array that may be absent."""
    return None if array is None else array[where]


def alike(masks: Sequence[np.ndarray]) -> Iterator[tuple[list[int], np.ndarray]]:
    """Columns that have values for the same queries, with the mask of these: one draw serves them all."""
    groups: dict[bytes, list[int]] = {}
    for i, mask in enumerate(masks):
        groups.setdefault(np.packbits(mask).tobytes(), []).append(i)
    for columns in groups.values():
        yield columns, masks[columns[0]]
