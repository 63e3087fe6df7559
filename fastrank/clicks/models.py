"""`ClickModel`: the parameters of a click model, fitted or written by hand, and the documents that they belong to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.arrays import as_array, frozen
from fastrank.clicks.checks import coded, whole
from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from fastrank.clicks.log import ClickLog
    from fastrank.clicks.summaries import Summary
    from fastrank.io.atomic import Path

# The kinds of parameters, in the order in which they are told.
PARAMETERS = ("attr", "sat", "exam", "cont")
# What each model has of them: "pair" (one per document of a query), "rank", "last" (rank and last clicked rank), or how many numbers.
NEEDS: dict[str, dict[str, str | int]] = {
    "gctr": {"exam": 1},
    "rctr": {"exam": "rank"},
    "dctr": {"attr": "pair"},
    "pbm": {"attr": "pair", "exam": "rank"},
    "cm": {"attr": "pair"},
    "dcm": {"attr": "pair", "cont": "rank"},
    "sdbn": {"attr": "pair", "sat": "pair"},
    "dbn": {"attr": "pair", "sat": "pair", "cont": 1},
    "ubm": {"attr": "pair", "exam": "last"},
    "ccm": {"attr": "pair", "cont": 3},
}
# The user browsing model has a parameter for every two ranks.
DEEPEST_OF_UBM = 2048


def check_name(name: Any) -> str:
    """The name of a click model."""
    if not isinstance(name, str) or name not in NEEDS:
        raise InputError(f"model must be one of {', '.join(NEEDS)}, not {name!r}.")
    return name


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ClickModel:
    """A click model: how a click depends on the document, its rank and the clicks above it.

    ====  ==========================================  ==============================================================
    name  P(click at rank k | clicks above)           parameters
    ====  ==========================================  ==============================================================
    gctr  exam[0]                                     exam: 1
    rctr  exam[k]                                     exam: per rank
    dctr  attr                                        attr
    pbm   attr · exam[k]                              attr; exam: per rank
    cm    attr until the first click, then 0          attr
    dcm   attr · e, after a click e = cont[k]         attr; cont: per rank
    sdbn  attr · e, after a click e = 1 - sat         attr; sat
    dbn   attr · e, after a click e = cont (1 - sat)  attr; sat; cont: 1
    ubm   attr · exam[k, j], j the last clicked rank  attr; exam: [K, K + 1], column 0 for no click yet, NaN where j >= k
    ccm   attr · e, after a click                     attr; cont: 3, after a skip, after a click that did not satisfy
          e = cont[1] (1 - attr) + cont[2] attr       and after one that did
    ====  ==========================================  ==============================================================

    In cm, dcm, sdbn, dbn and ccm e is the chance that the document is examined: 1 at the top, and after a skip
    e · t · (1 - attr) / (1 - attr · e), where t is cont in dbn, cont[0] in ccm and 1 elsewhere.

    Parameters
    ----------
    name
        One of the above.
    attr, sat
        float64[n_pairs]: attraction and satisfaction, one per pair of query and document.
    exam, cont
        Examination and continuation, as the table says; index 0 is rank 1.
    docs, queries
        The document and the query of each pair. docs=None: documents are 0, 1, 2, ... queries=None: the attraction of a document is the
        same for every query.
    unseen
        Attraction of a document, and any other parameter, that the model has no value for.

    Attributes
    ----------
    objective
        float64: log posterior after each step of the fit; the last one is that of these parameters. Empty for a model written by hand.
    n_iterations, converged
        Passes over the data, and whether the last one moved no parameter by more than the tolerance.

    Errors: `InputError`, one line that says what, where and the cure.

    Sources: Craswell, Zoeter, Taylor and Ramsey, WSDM 2008 (pbm, cm); Guo, Liu and Wang, WSDM 2009 (dcm); Chapelle and Zhang, WWW 2009
    (sdbn, dbn); Dupret and Piwowarski, SIGIR 2008 (ubm); Guo et al., WWW 2009 (ccm); Chuklin, Markov and de Rijke, Click Models for Web
    Search, 2015.

    Examples
    --------
    >>> from fastrank.clicks import ClickModel
    >>> ClickModel("pbm", attr=[0.4, 0.6], exam=[1, 0.5], docs=["a", "b"])
    ClickModel('pbm', 2 documents, 2 ranks)
    """

    name: str
    attr: np.ndarray | None
    sat: np.ndarray | None
    exam: np.ndarray | None
    cont: np.ndarray | None
    docs: pa.Array | None
    queries: pa.Array | None
    unseen: tuple[float, float]
    objective: np.ndarray
    n_iterations: int
    converged: bool

    def __init__(
        self,
        name: str,
        *,
        attr: Any = None,
        sat: Any = None,
        exam: Any = None,
        cont: Any = None,
        docs: Any = None,
        queries: Any = None,
        unseen: tuple[float, float] = (0.5, 0.5),
        objective: Any = (),
        n_iterations: int = 0,
        converged: bool = True,
    ) -> None:
        given = {"attr": attr, "sat": sat, "exam": exam, "cont": cont}
        needs = NEEDS[check_name(name)]
        for kind in PARAMETERS:
            if (given[kind] is None) == (kind in needs):
                raise InputError(f"{name} {'needs' if kind in needs else 'has no'} {kind}=: its parameters are {', '.join(needs)}.")
        fields = {kind: None if kind not in needs else _parameter(kind, given[kind], needs[kind]) for kind in PARAMETERS}
        n_pairs = 0 if fields["attr"] is None else len(fields["attr"])
        if fields["sat"] is not None and len(fields["sat"]) != n_pairs:
            raise InputError(f"sat must have one entry per entry of attr, {n_pairs}, not {len(fields['sat'])}.")
        ids = _pairs(docs, queries, n_pairs) if fields["attr"] is not None else (None, None)
        self.__dict__.update(fields)
        self.__dict__.update(name=name, docs=ids[0], queries=ids[1], unseen=_two_shares("unseen", unseen))
        self.__dict__.update(objective=frozen(np.array(objective, np.float64), np.float64), n_iterations=n_iterations, converged=converged)

    def scores(self) -> pa.Table:
        """What the model makes of each document, as a run: columns query_id (where the model has queries), doc_id and score.

        The score is the attraction, and in sdbn and dbn attraction times satisfaction: the chance that a user who sees the document is
        content with it. `evaluate_run` takes the table as a run. gctr and rctr know no documents: `InputError`.

        >>> from fastrank.clicks import ClickModel
        >>> import fastrank as fr
        >>> model = ClickModel("sdbn", attr=[0.9, 0.5], sat=[0.2, 0.8], docs=["a", "b"], queries=["q", "q"])
        >>> model.scores()["score"].to_pylist()
        [0.18000000000000002, 0.4]
        >>> fr.evaluate_run({"q": {"b": 1}}, model.scores(), "RR").mean()
        {'RR': 1.0}
        """
        import pyarrow as pa

        if self.attr is None:
            raise InputError(f"{self.name} has no parameters of documents, so it cannot rank them: fit another model.")
        columns = {} if self.queries is None else {"query_id": self.queries}
        score = self.attr if self.sat is None else self.attr * self.sat
        return pa.table(columns | {"doc_id": self.docs, "score": score})

    def summary(self, log: ClickLog, *, threads: int | None = None) -> Summary:
        """The model in brief: its parameters by rank, and its `score` of a log. It shows itself as tables.

        threads: None is every processor; the bits are the same for any number.
        """
        from fastrank.clicks.summaries import summary

        return summary(self, log, threads)

    def save(self, path: Path) -> None:
        """Write the model to a file, whole or not at all; `ClickModel.load` gives it back to the last bit.

        A Parquet table has a row per pair, with columns query_id, doc_id, attr and sat as far as the model has them; its metadata hold the
        rest. A name that ends in .npz gives NumPy's archive of the same columns, without pickle, in which `about` holds the rest as JSON.
        """
        from fastrank.clicks.saving import save

        save(self, path)

    @classmethod
    def load(cls, path: Path) -> ClickModel:
        """Read a model that `save` has written. Nothing in the file is ever run.

        Raises `InputError` where the file is missing, damaged, no click model, or in a format of a newer version.

        >>> import tempfile
        >>> from fastrank.clicks import ClickModel
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ClickModel("pbm", attr=[0.4, 0.6], exam=[1, 0.5], docs=["a", "b"]).save(f"{folder}/pbm.parquet")
        ...     again = ClickModel.load(f"{folder}/pbm.parquet")
        >>> again, again.exam.tolist()
        (ClickModel('pbm', 2 documents, 2 ranks), [1.0, 0.5])
        """
        from fastrank.clicks.saving import load

        return load(path)

    def __repr__(self) -> str:
        def counted(n: int, what: str, more: str = "") -> str:
            return f"{n} {what}{'' if n == 1 else 's'}{more}"

        parts = [repr(self.name)]
        if self.attr is not None:
            kind = ("document",) if self.queries is None else ("pair", " of query and document")
            parts.append(counted(len(self.attr), *kind))
        parts.extend(counted(len(getattr(self, kind)), "rank") for kind, need in NEEDS[self.name].items() if need in ("rank", "last"))
        if self.n_iterations:
            parts.append(counted(self.n_iterations, "iteration", "" if self.converged else ", not converged"))
        return f"ClickModel({', '.join(parts)})"


# --- the boundary ---------------------------------------------------------------------------------------------------------------


def _parameter(kind: str, value: Any, need: str | int) -> np.ndarray:
    """Probabilities of one kind, in the shape that the model asks for."""
    array, missing = as_array(kind, value)
    array = np.atleast_1d(array).astype(np.float64)
    legal = (array >= 0) & (array <= 1)
    if need == "last":
        if array.ndim != 2 or array.shape[1] != len(array) + 1:
            raise InputError(f"exam of ubm must have the shape [K, K + 1], a row per rank and a column per last click, not {array.shape}.")
        legal |= np.tri(*array.shape) == 0
    elif array.ndim != 1 or (isinstance(need, int) and len(array) != need):
        raise InputError(f"{kind} must be {'one list' if isinstance(need, str) else need} of numbers, not an array of shape {array.shape}.")
    if missing is not None or not legal.all():
        place = np.argwhere(~legal if missing is None else missing)[0].tolist()
        raise InputError(f"{kind} must be probabilities: {kind}{place} is {array[tuple(place)] if missing is None else 'missing'}.")
    return frozen(array, np.float64)


def _pairs(docs: Any, queries: Any, n: int) -> tuple[pa.Array, pa.Array | None]:
    ids = _ids("docs", np.arange(n) if docs is None else docs, n), None if queries is None else _ids("queries", queries, n)
    pairs = _keys(_codes(ids[0]), None if ids[1] is None else _codes(ids[1]))
    order = np.argsort(pairs, kind="stable")
    again = np.flatnonzero(np.diff(pairs[order]) == 0)
    if len(again):
        i = int(order[again[0] + 1])
        of_query = "" if ids[1] is None else f" of query {ids[1][i].as_py()!r}"
        raise InputError(f"docs must not name a document twice: {ids[0][i].as_py()!r}{of_query} stands again at {i}.")
    return ids


def _ids(name: str, value: Any, n: int) -> pa.Array:
    import pyarrow as pa

    codes, values = coded(name, value, n, "entry of attr")
    return pa.DictionaryArray.from_arrays(pa.array(codes), values)


def _codes(ids: pa.Array) -> np.ndarray:
    return np.asarray(ids.indices.to_numpy(), np.int64)


def _keys(docs: np.ndarray, queries: np.ndarray | None) -> np.ndarray:
    """One number per pair."""
    return docs if queries is None else (queries << 32) | docs


def _two_shares(name: str, value: Any) -> tuple[float, float]:
    if not isinstance(value, tuple | list) or len(value) != 2 or not all(isinstance(x, int | float) and 0 <= x <= 1 for x in value):
        raise InputError(f"{name} must be two probabilities, not {value!r}.")
    return float(value[0]), float(value[1])


# --- the documents of a log -----------------------------------------------------------------------------------------------------


def find_pairs(model: ClickModel, log: ClickLog) -> np.ndarray:
    """int32[log.n_pairs]: the place of each pair of the log in the model, -1 for one that it has not seen."""
    import pyarrow as pa
    import pyarrow.compute as pc

    assert model.docs is not None
    if model.queries is not None and log.queries is None:
        raise InputError("the documents of this model belong to queries, and the log has none: give the log query=.")
    docs = _found(log.docs, model.docs.dictionary)[log.pair_doc]
    known = docs >= 0
    if model.queries is None:
        keys, wanted = _codes(model.docs), docs
    else:
        queries = _found(log.queries, model.queries.dictionary)[log.pair_query]
        known &= queries >= 0
        keys, wanted = _keys(_codes(model.docs), _codes(model.queries)), _keys(docs, queries)
    places = pc.fill_null(pc.index_in(pa.array(wanted), value_set=pa.array(keys)), -1).to_numpy()
    return np.where(known, places, -1).astype(np.int32)


def _found(ids: pa.Array, among: pa.Array) -> np.ndarray:
    """int64: the place of each id among others, -1 where it is not. A number equals its decimal text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if ids.type != among.type:
        ids, among = (array.cast(pa.large_string()) for array in (ids, among))
    return whole("ids", pc.fill_null(pc.index_in(ids, value_set=among), -1).to_numpy())
