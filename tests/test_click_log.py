"""Click logs: what is numbered, counted, read and refused."""

from __future__ import annotations

import pkgutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click_logs import random_log, rows_of

import fastrank as fr
from fastrank import clicks
from fastrank._kernel import Kernel
from fastrank.clicks import ClickLog, curves, interleaving, pairing, placement, propensity, rates, relevance, replay
from fastrank.clicks.reading import read_log, read_ranking

ROWS = {
    "session_id": ["s1", "s2", "s1", "s2", "s1"],
    "query_id": ["shoes", "hats", "shoes", "hats", "shoes"],
    "doc_id": ["b", "x", "a", "y", "c"],
    "position": [2, 1, 1, 2, 3],
    "click": [1, 0, 0, 1, 0],
    "user": [7, 8, 7, 8, 7],
    "device": ["phone", "desk", "phone", "desk", "phone"],
    "times": [1.0, 2.0, 1.0, 2.0, 1.0],
}
LISTS = {
    "qid": ["shoes", "hats"],
    "docs": [["a", "b", "c"], ["x", "y"]],
    "clicks": [[0, 1, 0], [0, 1]],
    "positions": [[1, 2, 3], [1, 2]],
    "user": [7, 8],
    "device": ["phone", "desk"],
    "times": [1.0, 2.0],
}


def same(one: ClickLog, other: ClickLog) -> bool:
    """Whether two logs hold the same sessions."""
    arrays = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("offsets", "click", "position", "query", "weights"))
    docs = [log.docs.take(pa.array(log.pair_doc[log.qd])).to_pylist() for log in (one, other)]
    return arrays and docs[0] == docs[1] and one.queries == other.queries


# --- arrays -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("order", [0, 1])
def test_cells_add_up_the_rows(weighted: bool, gaps: bool, order: int) -> None:
    for seed, longest in ((0, 5), (1, 40)):
        log = random_log(seed, 80, longest=longest, n_docs=longest + 2, weighted=weighted, gaps=gaps)
        expected: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for row in rows_of(log):
            cell = expected[(row["pair"], row["position"], row["previous"])[: 2 + order]]
            cell[0] += row["weight"]
            cell[1] += row["weight"] * row["click"]
        cells = log.cells(order)
        keys = [cells.group.tolist(), cells.position.tolist(), *([cells.previous.tolist()] if cells.previous is not None else [])]
        found = dict(zip(zip(*keys, strict=True), np.stack([cells.n, cells.clicks], axis=1).tolist(), strict=True))
        assert found == expected
        assert list(found) == sorted(found)
        assert np.array_equal(np.bincount(cells.group, minlength=log.n_pairs), np.diff(cells.start))


def test_pairs_are_numbered_query_by_query() -> None:
    log = random_log(3)
    named: dict[int, set[tuple[int, int]]] = defaultdict(set)
    for row in rows_of(log):
        named[row["pair"]].add((row["query"], int(log.pair_doc[row["pair"]])))
    assert all(len(pairs) == 1 for pairs in named.values())
    assert sorted(named) == list(range(log.n_pairs))
    assert {next(iter(pairs)) for pairs in named.values()} == {(int(q), int(d)) for q, d in zip(log.pair_query, log.pair_doc, strict=True)}
    assert log.pair_offsets.tolist() == [0, *np.cumsum(np.bincount(log.pair_query)).tolist()]


def test_a_dictionary_may_hold_values_twice_and_in_vain() -> None:
    docs = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", "b", "a", "z"]))
    queries = pa.DictionaryArray.from_arrays(pa.array([2, 0]), pa.array(["q1", "q2", "q3"]))
    log = ClickLog([0, 2, 3], docs, [1, 0, 1], queries)
    assert log.docs.take(pa.array(log.pair_doc[log.qd])).to_pylist() == ["a", "b", "a"]
    assert log.pair_offsets.tolist() == [0, 1, 1, 3]


def test_without_queries_a_document_is_a_pair() -> None:
    log = ClickLog([0, 2, 4], ["a", "b", "b", "a"], [0, 1, 0, 0])
    assert log.queries is None
    assert log.n_pairs == 2
    assert repr(log) == "ClickLog(2 sessions, 4 documents shown, 1 click, 2 documents, positions 1 to 2)"


def test_empty_logs_and_sessions_are_data() -> None:
    nothing = ClickLog([0], [], [])
    assert repr(nothing) == "ClickLog(0 sessions, 0 documents shown, 0 clicks, 0 documents)"
    assert len(nothing.cells()) == len(nothing.cells(1)) == nothing.n_positions == 0
    empty = ClickLog([0, 0, 1, 1], ["a"], [1], ["p", "q", "p"])
    assert (empty.n_sessions, empty.n_rows, empty.n_pairs, empty.n_positions) == (3, 1, 1, 1)


def test_a_log_cannot_be_changed() -> None:
    log = random_log(0)
    with pytest.raises(ValueError, match="read-only"):
        log.click[0] = 1
    with pytest.raises(AttributeError):
        log.click = log.click  # type: ignore[misc]


def test_what_was_given_is_left_as_it_was() -> None:
    offsets, doc, click = np.array([0, 2]), np.array([5, 6]), np.array([0, 1], np.uint8)
    ClickLog(offsets, doc, click)
    offsets[1] = doc[0] = click[0] = 1  # still writeable


def test_positions_in_order() -> None:
    assert ClickLog([0, 2], [1, 2], [0, 0]).in_order
    assert ClickLog([0, 2], [1, 2], [0, 0], position=[1, 2]).in_order
    assert not ClickLog([0, 2], [1, 2], [0, 0], position=[1, 3]).in_order


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a click of 2": ({"click": [0, 2, 0]}, "click must be 0 or 1: row 1 .session 0, its document 2. has 2.*write 1"),
    "a click of NaN": ({"click": [0, 0, float("nan")]}, "click must be 0 or 1: row 2 .session 1, its document 1. has nan"),
    "a click of null": ({"click": pa.array([0, None, 1])}, "click must not hold nulls: entry 1 is missing"),
    "clicks as text": ({"click": ["0", "1", "0"]}, "click must be numbers"),
    "too few clicks": ({"click": [0, 1]}, "click must have one entry per document shown, 3, not 2"),
    "two dimensions": ({"click": [[0, 1, 0]]}, "click must have one dimension, not 2"),
    "a document twice": ({"doc": ["a", "a", "b"]}, "doc must not show a document twice in a session: 'a' is shown again at row 1"),
    "documents by floats": ({"doc": [0.5, 1.5, 2.5]}, "doc must be text or integers, not floats"),
    "offsets beyond": ({"offsets": [0, 2, 4]}, r"offsets must end with the number of documents shown, 3: offsets\[2\] = 4"),
    "offsets that go back": ({"offsets": [0, 3, 2, 3]}, r"offsets must not decrease: offsets\[2\] = 2 < offsets\[1\] = 3"),
    "offsets that begin late": ({"offsets": [1, 3]}, "offsets must begin with 0.*numpy.cumsum"),
    "no offsets": ({"offsets": []}, "offsets must have one entry more than there are sessions"),
    "fractional offsets": ({"offsets": [0, 1.5, 3]}, r"offsets must be whole numbers: offsets\[1\] is 1.5"),
    "huge offsets": ({"offsets": np.array([0, 2**63], np.uint64)}, "offsets must be whole numbers"),
    "positions from 0": (
        {"position": [0, 1, 0]},
        "position must be a rank from 1.*row 0.*has 0. Positions are counted from 1: add 1 to all",
    ),
    "a position below 0": ({"position": [1, 2, -1]}, "position must be a rank from 1.*row 2.*has -1. Give the rank"),
    "positions that are times": ({"position": [1, 2, 1_700_000_000]}, "position must be a rank from 1 to 1000000"),
    "positions out of order": ({"position": [2, 1, 1]}, "position must ascend within a session: row 1 .* has 1 after 2"),
    "a position twice": ({"position": [1, 1, 1]}, "position must ascend within a session"),
    "too few queries": ({"query": ["q"]}, "query must have one entry per session, 2, not 1"),
    "a query of null": ({"query": pa.array(["q", None])}, "query must not be null: row 1 is"),
    "a weight below 0": ({"weight": [1, -1]}, r"weight must be finite and not negative: weight\[1\] is -1"),
    "too few columns": ({"columns": {"device": ["phone"]}}, "column 'device' must have one entry per session, 2, not 1"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named_with_its_place_and_cure(name: str) -> None:
    changed, message = BAD[name]
    given = {"offsets": [0, 2, 3], "doc": ["a", "b", "a"], "click": [0, 1, 0]} | changed
    with pytest.raises(fr.InputError, match=message) as error:
        ClickLog(**given)
    assert "\n" not in str(error.value)


def test_an_unknown_order_of_cells_is_refused() -> None:
    with pytest.raises(fr.InputError, match="order must be 0"):
        random_log(0).cells(2)


def test_cells_too_many_for_32_bits_are_refused() -> None:
    log = ClickLog([0, 1], ["a"], [1], position=[50_000])
    with pytest.raises(fr.InputError, match="too deep"):
        log.cells(1)


def test_columns_keep_their_values() -> None:
    log = ClickLog([0, 1], ["a"], [1], columns={"share": np.array([0.5]), "ranker": pa.chunked_array([["new"]])})
    assert {name: column.to_pylist() for name, column in log.columns.items()} == {"share": [0.5], "ranker": ["new"]}


def test_public_names_are_there_and_no_module_bears_one() -> None:
    assert fr.clicks is clicks
    assert all(getattr(clicks, name) is not None for name in clicks.__all__)
    assert set(clicks.__all__) <= set(dir(clicks))
    assert {module.name for module in pkgutil.iter_modules(clicks.__path__)} & set(clicks.__all__) == set()
    with pytest.raises(AttributeError, match="no attribute 'clics'"):
        clicks.clics  # noqa: B018  (looking it up is the test)


@pytest.mark.compiled
def test_each_kernel_is_compiled_once() -> None:
    for weighted in (False, True):
        log = random_log(0, 300, n_docs=7, weighted=weighted, clustered=weighted, gaps=weighted)
        theta, new = np.ones(log.n_positions), log.position
        for order in (0, 1):
            log.cells(order)
        propensity(log, log.qd % 5, np.arange(log.n_rows) % 2 == 0)
        for how in ({}, {"exposure": "policy", "estimator": "dr"}, {"weight": np.ones(log.n_rows), "beta": theta / 9}):
            clicks.evaluate(log, theta, new, **how)
        clicks.rank_in(log, [0, 2], [1, 2], log.queries[:1])
        clicks.session_metrics(log)
        for method in ("team_draft", "balanced", "probabilistic"):
            clicks.interleave_score(new % 3 if method == "team_draft" else (new, new), log, method=method)
    found = [each for module in (pairing, curves, replay, placement, rates, interleaving) for each in vars(module).values()]
    kernels = {each.__name__: each for each in found if isinstance(each, Kernel) and not each.__name__.startswith("_")}
    assert {"fill_cells", "square_scores", "weigh_slots", "place_pairs", "click_ranks", "credit_tops"} <= set(kernels)
    assert {name for name, each in kernels.items() if len(each.signatures) > 1} == set()


# --- tables -----------------------------------------------------------------------------------------------------------------------


def test_all_ways_in_give_the_same_log(tmp_path: Path) -> None:
    rows, lists = pa.table(ROWS), pa.table(LISTS)
    expected = ClickLog([0, 3, 5], list("abcxy"), [0, 1, 0, 0, 1], ["shoes", "hats"], weight=[1, 2])
    pq.write_table(rows, tmp_path / "rows.parquet")
    pq.write_table(lists, tmp_path / "lists.parquet")
    options: dict[str, Any] = {"cluster": "user", "weight": "times", "columns": ["device"]}
    logs = [
        ClickLog.from_table(rows, **options),
        ClickLog.from_table(tmp_path / "rows.parquet", **options),
        ClickLog.from_arrow(lists, **options),
        ClickLog.from_arrow(tmp_path / "lists.parquet", position="positions", **options),
        ClickLog.from_arrow(lists.set_column(2, "clicks", pa.array([["b"], ["y"]])), **options),
    ]
    for log in logs:
        order = [log.queries.to_pylist().index(name) for name in ("shoes", "hats")]
        first = log.query.tolist() == order
        assert first, "sessions in the order of the table"
        assert same(log, expected)
        assert log.columns["device"].to_pylist() == ["phone", "desk"]
        assert log.cluster is not None
        assert len(set(log.cluster.tolist())) == 2


def test_rows_of_a_stream_are_put_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    sizes = generator.integers(2, 9, 300)
    session = np.repeat(np.arange(300), sizes)
    position = np.concatenate([np.arange(1, n + 1) for n in sizes])
    table = pa.table({"session_id": session, "doc_id": position * 3, "position": position, "click": generator.integers(0, 2, len(session))})
    expected = ClickLog.from_table(table, query=None)
    shuffled = table.take(pa.array(generator.permutation(len(table))))
    in_session = table.take(pa.array(np.lexsort((-position, session))))
    late = pa.concat_tables([table.slice(1), table.slice(0, 1)])  # the first session goes on after others were read
    monkeypatch.setattr("fastrank.clicks.reading.ROWS_PER_BATCH", 100)
    for i, changed in enumerate((table, shuffled, in_session, late)):
        pq.write_table(changed, tmp_path / f"{i}.parquet", row_group_size=64)
        assert same(ClickLog.from_table(tmp_path / f"{i}.parquet", query=None), expected)
    by_row = ClickLog.from_table(table, query=None, position=None)
    assert same(by_row, expected)


def test_an_empty_table_is_an_empty_log() -> None:
    rows = pa.table({name: pa.array([], pa.array(values).type) for name, values in ROWS.items()})
    lists = pa.table({name: pa.array([], pa.array(values).type) for name, values in LISTS.items()})
    for log in (ClickLog.from_table(rows), ClickLog.from_arrow(lists, weight="times")):
        assert (log.n_sessions, log.n_rows) == (0, 0)


def lists_with(**changed: Any) -> pa.Table:
    return pa.table(LISTS | changed)


def rows_with(**changed: Any) -> pa.Table:
    return pa.table(ROWS | changed)


BAD_LISTS: dict[str, tuple[pa.Table, dict[str, Any], str]] = {
    "no lists": (lists_with(), {"docs": "qid"}, 'docs column "qid" is string, not a list.*ClickLog.from_table'),
    "no such column": (lists_with(), {"clicks": "clics"}, 'clicks: there is no column "clics" in the table; the nearest name is "clicks"'),
    "more clicks": (lists_with(clicks=[[0, 1, 0], [0]]), {}, "must have an entry per document shown: in the table row 1 has 1 of 2"),
    "fewer positions": (
        lists_with(positions=[[1, 2], [1, 2]]),
        {"position": "positions"},
        'positions column "positions" must have an entry',
    ),
    "a null document": (lists_with(docs=[["a", "b", None], ["x", "y"]]), {}, 'docs column "docs" must not hold nulls.*row 0'),
    "a null click": (lists_with(clicks=[[0, 1, 0], [0, None]]), {}, 'clicks column "clicks" must not hold nulls.*row 1'),
    "a null clicked id": (lists_with(clicks=[["a", None], []]), {}, 'clicks column "clicks" must not hold nulls.*row 0'),
    "a clicked id that is not shown": (lists_with(clicks=[["a"], ["a"]]), {}, "names 'a', which the session does not show.*row 1"),
    "floats for ids": (lists_with(docs=[[0.5], [1.5]]), {}, 'docs column "docs" is list.*cast its values to integers or text'),
    "a null weight": (lists_with(times=[1.0, None]), {"weight": "times"}, 'weight column "times" must not be null'),
    "text for weights": (lists_with(times=["a", "b"]), {"weight": "times"}, 'weight column "times" is string, not a number'),
    "a null query": (lists_with(qid=["shoes", None]), {}, "query must not be null"),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_bad_lists_are_named(name: str) -> None:
    table, options, message = BAD_LISTS[name]
    with pytest.raises(fr.InputError, match=message):
        ClickLog.from_arrow(table, **options)


BAD_ROWS: dict[str, tuple[pa.Table, dict[str, Any], str]] = {
    "no session": (rows_with(), {"session": "visit"}, '^session: there is no column "visit"'),
    "no click": (rows_with(), {"click": "tap"}, '^click: there is no column "tap"'),
    "a null click": (rows_with(click=[0, None, 1, 0, 0]), {}, 'click column "click" must not be null: row 1 is'),
    "a null position": (rows_with(position=[1, 1, 2, None, 3]), {}, 'position column "position" must not be null: row 3 is'),
    "a null query": (rows_with(query_id=["a", None, "a", None, "a"]), {}, 'query column "query_id" must not be null: row 1 is'),
    "two queries": (rows_with(query_id=["a", "b", "a", "b", "c"]), {}, 'column "query_id" must be constant within a session: in session'),
    "text for clicks": (rows_with(), {"click": "doc_id"}, '^click column "doc_id" is string, not a number'),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_are_named(name: str) -> None:
    table, options, message = BAD_ROWS[name]
    with pytest.raises(fr.InputError, match=message):
        ClickLog.from_table(table, **options)


def test_usual_columns_are_found() -> None:
    expected = ClickLog([0, 3, 5], list("abcxy"), [0, 1, 0, 0, 1], ["shoes", "hats"])
    lists = pa.table(LISTS).rename_columns({"docs": "ranking"})
    for table in (pa.table(ROWS), lists):
        assert same(ClickLog(**read_log(table, {})), expected)
    bare = pa.table({"session": [1, 1], "doc": ["a", "b"], "clicked": [0, 1]})
    assert same(ClickLog(**read_log(bare, {})), ClickLog([0, 2], ["a", "b"], [0, 1]))


def test_rankings_of_every_kind_are_the_same(tmp_path: Path) -> None:
    run = tmp_path / "run.txt"
    run.write_text("q1 Q0 d1 0 0.5 t\nq1 Q0 d2 0 0.5 t\nq1 Q0 d3 0 0.9 t\nq2 Q0 d1 0 1 t\n")
    table = pa.table({"query_id": ["q1", "q1", "q1", "q2"], "doc_id": ["d1", "d2", "d3", "d1"], "score": [0.5, 0.5, 0.9, 1.0]})
    lists = pa.table({"qid": ["q1", "q2"], "docs": [["d3", "d2", "d1"], ["d1"]]})
    pq.write_table(lists, tmp_path / "lists.parquet")
    for source in (run, table, lists, tmp_path / "lists.parquet"):
        offsets, docs, queries = read_ranking(source)
        assert offsets.tolist() == [0, 3, 4]
        assert docs.to_pylist() == ["d3", "d2", "d1", "d1"]
        assert queries.to_pylist() == ["q1", "q2"]


def test_ragged_sessions_of_1_to_300_documents() -> None:
    log = ClickLog(
        np.append(0, np.cumsum(np.arange(1, 301))), np.concatenate([np.arange(n) for n in range(1, 301)]), np.arange(45150) % 7 == 0
    )
    assert log.n_positions == 300
    assert log.cells().n.sum() == log.n_rows == 45150
    assert relevance(log, 1 / np.arange(1, 301)).exposure.sum() == pytest.approx(sum((301 - k) / k for k in range(1, 301)))
    assert propensity(log).theta.shape == (300,)
