"""What each block of a dataset gives and how it is merged, without a cluster."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from cluster_rows import METRICS, OPTIONS, TABLE, bits, by_id, judgements

import fastrank as fr
from fastrank.distributed.blocks import KEY, SCHEMA, Gathered, evaluate_block, one_side, query_values, with_keys
from fastrank.distributed.parts import Job
from fastrank.distributed.runs import DOC, JUDGED, LABEL, QUERY, SCORE, RunJob

JOB = Job("query_id", "label", "score", None, "weight", ("part",), METRICS, "fastrank", {"per_query": True, "n_resamples": 100})
WHOLE = fr.evaluate_table(TABLE, METRICS, **OPTIONS)


def cut(table: pa.Table, n: int) -> list[pa.Table]:
    places = np.linspace(0, len(table), n + 1).astype(int)
    return [table.slice(first, last - first) for first, last in itertools.pairwise(places)]


def gathered(blocks: list[pa.Table], job: Any = JOB, *, is_whole: bool = False, **limits: int) -> tuple[Gathered, str | None]:
    """What the blocks gave, and why they cannot be merged as they are."""
    found = Gathered(job, **limits)
    for block in blocks:
        for row in evaluate_block(block, work=job, is_whole=is_whole).to_pylist():
            why_not = found.add(row)
            if why_not is not None:
                return found, why_not
    return found, found.split()


@pytest.mark.parametrize("n_blocks", [1, 2, 7, 64])
def test_blocks_in_any_order_are_joined_at_their_edges(n_blocks: int) -> None:
    blocks = cut(TABLE, n_blocks)
    np.random.default_rng(n_blocks).shuffle(blocks)  # type: ignore[arg-type]
    found, why_not = gathered(blocks)
    assert why_not is None
    assert len(found) == n_blocks
    assert bits(found.merged().result()) == bits(WHOLE)


def test_blocks_of_single_rows() -> None:
    few = TABLE.slice(0, 60)
    found, why_not = gathered(cut(few, 60))
    assert why_not is None
    assert bits(found.merged().result()) == bits(fr.evaluate_table(few, METRICS, **OPTIONS))


def test_the_order_of_arrival_shows_nowhere() -> None:
    blocks = cut(TABLE, 7)
    one, other = (gathered(order)[0].merged().to_bytes() for order in (blocks, blocks[::-1]))
    assert one == other


def test_a_query_inside_two_blocks_is_noticed() -> None:
    table = pa.table({"query_id": [*"abbc", *"dbbe"], "label": [1] * 8, "score": np.arange(8.0)})
    job = Job("query_id", "label", "score", None, None, (), "RR", "fastrank", {})
    assert gathered(cut(table, 2), job)[1] == "a query stands inside several blocks"
    # At the edge of one block and inside another.
    assert gathered([table.slice(0, 4), table.slice(5, 3)], job)[1] == "a query stands inside several blocks"
    assert gathered([table.slice(0, 3), table.slice(5, 3)], job)[1] is None


def test_what_the_merging_process_holds_is_bounded() -> None:
    assert gathered(cut(TABLE, 64), most_edges=100)[1] == "blocks hold few whole queries"
    assert gathered(cut(TABLE, 2), most_keys=100)[1] == "more than 100 queries to tell apart"


def test_sorted_by_their_keys_blocks_are_whole() -> None:
    shuffled = TABLE.take(pa.array(np.random.default_rng(0).permutation(len(TABLE))))
    by_key = pa.concat_tables([with_keys(block, work=JOB) for block in cut(shuffled, 5)]).sort_by(KEY)
    keys = by_key.column(KEY).to_numpy()
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    places = [0, *starts[[100, 200, 300]].tolist(), len(keys)]
    blocks = [by_key.slice(first, last - first) for first, last in itertools.pairwise(places)]
    found, why_not = gathered(blocks, is_whole=True)
    assert why_not is None
    assert bits(found.merged().result()) == bits(WHOLE)
    values = pa.concat_tables([query_values(block, job=JOB) for block in blocks]).sort_by("query_id")
    assert values.column_names == ["query_id", *WHOLE.names]
    assert values.column("query_id").to_pylist() == WHOLE.query_ids.to_pylist()
    assert np.column_stack([values.column(name).to_numpy() for name in WHOLE.names]).tobytes() == WHOLE.values.tobytes()
    # Cut elsewhere, a query would count twice.
    inside = next(place for place in range(1, len(keys)) if keys[place] == keys[place - 1])
    assert gathered([by_key.slice(0, inside), by_key.slice(inside)], is_whole=True)[1] == "a query stands in several blocks"


def test_blocks_without_rows_and_dictionaries_that_differ() -> None:
    empty = TABLE.slice(0, 0)
    assert evaluate_block(empty, work=JOB).schema == SCHEMA
    assert len(with_keys(empty, work=JOB)) == len(query_values(empty, job=JOB)) == 0
    found, why_not = gathered([empty, empty])
    assert (len(found), why_not, found.merged().n_queries) == (0, None, 0)
    encoded = [block.set_column(0, "query_id", block["query_id"].dictionary_encode()) for block in cut(TABLE, 7)]
    assert bits(gathered([encoded[0], empty, *encoded[1:]])[0].merged().result()) == bits(WHOLE)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns("label"), r'^label: there is no column "label" in the dataset'),
        (lambda table: table.set_column(1, "label", table["query_id"]), r'^label column "label" is string, not a number'),
        (lambda table: table.set_column(0, "query_id", pa.nulls(len(table), pa.string())), r'^query column "query_id" must not be null'),
        (lambda table: table.set_column(2, "score", pc.divide(0.0, pc.multiply(table["weight"], 0.0))), "NaN"),
    ],
)
def test_what_is_wrong_in_a_block_is_one_line(change: Any, message: str) -> None:
    with pytest.raises(fr.InputError, match=message) as caught:
        gathered(cut(change(TABLE), 3))
    assert "\n" not in str(caught.value)


def test_judgements_and_a_run_are_one_table() -> None:
    qrels, run = judgements(0)
    types = [(QUERY, pa.string()), (DOC, pa.string()), (LABEL, pa.int64()), (SCORE, pa.float64()), (JUDGED, pa.bool_())]
    schema = pa.schema(types)
    sides = [(qrels, {QUERY: "query_id", DOC: "doc_id", LABEL: "label"}), (run, {QUERY: "query_id", DOC: "doc_id", SCORE: "score"})]
    rows = pa.concat_tables([one_side(block, names=names, schema=schema) for table, names in sides for block in (table, table.slice(0, 0))])
    job = RunJob("nDCG@10,AP", "trec_eval", "zero", "error", {"per_query": True})
    by_key = with_keys(rows, work=job).sort_by(KEY)
    found, why_not = gathered([by_key], job, is_whole=True)
    assert why_not is None
    whole = fr.evaluate_run(qrels, run, "nDCG@10,AP")
    result = job.result(found.merged())
    assert by_id(result) == by_id(whole)
    assert result.moments == whole.moments
