"""Every metric of the table against its reference, its slow truth, and the other programs that have it."""

from __future__ import annotations

from collections.abc import Iterator

import brute_force
import metric_peers
import metric_table
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from metric_peers import Peer
from metric_table import PEERS, TABLE, instances
from strategies import SIGNED_GRADES, WHOLE_GRADES, Batch, as_batch, batches, random_batch

import fastrank as fr
from fastrank.convention import TIE_RULES, Convention
from fastrank.gains import GainTable
from fastrank.metrics import Metric, families

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
# Labels below 0 are legal where a convention says so.
SIGNED = Convention("signed", "the default, with labels below 0", negative_labels=True)

# All shapes at once, for the tests without hypothesis: many short lists, some longer ones, documents unjudged and not retrieved.
EVERYTHING = as_batch(
    [
        (batch.query(q).labels, batch.query(q).scores)
        for batch in (
            random_batch(1, 40, 9, missing=True),
            random_batch(2, 3, 60, missing=True),
            random_batch(3, 2, 300, shortest=250, grades=(0, 1, 2)),
        )
        for q in range(batch.n_queries)
    ]
)


def names_of_documents(batch: Batch) -> np.ndarray:
    """A different id for every document, in no order."""
    return np.random.default_rng(len(batch.labels)).permutation(len(batch.labels))


def test_every_family_has_a_row() -> None:
    # Those of judgements by group stand in grouped_table.
    assert {family for family, metric in families.items() if not metric.grouped} == set(TABLE)


@pytest.mark.parametrize("family", TABLE)
def test_every_parameter_of_a_family_is_tried_with_more_than_its_default(family: str) -> None:
    row = TABLE[family]
    assert {type(metric).family for metric in row.metrics} == {family}
    for name in set(families[family].parameters()) - {"ties", "judged_only"}:
        if name != "k" or not families[family].whole_list_only:
            assert any(getattr(metric, name) is not None for metric in row.metrics), name


# --- the reference -------------------------------------------------------------------------------------------------------------


def assert_equals_reference(batch: Batch, metrics: tuple[Metric, ...], convention: Convention) -> None:
    doc_ids = names_of_documents(batch)
    result = fr.evaluate(*batch.arguments(), metrics=metrics, doc_ids=doc_ids, convention=convention)
    # Ids are compared as text: the reference gets them as such.
    ids = doc_ids.astype("U20").astype("S20")
    for metric in result.metrics:
        more = {"doc_ids": ids} if metric.sees_ties and metric.ties == "docid" else {}
        expected = metric_table.reference_of(metric, **more)(*batch)
        np.testing.assert_allclose(result[metric], expected, **CLOSE, err_msg=str(metric))


# Where equal scores have no closed form, no instance takes their average.
AVERAGED = [family for family in TABLE if instances(family, "average")]


@pytest.mark.parametrize(("family", "ties"), [(family, ties) for family in TABLE for ties in TIE_RULES if instances(family, ties)])
def test_the_engine_is_the_reference_on_every_shape_of_list(family: str, ties: str) -> None:
    assert_equals_reference(EVERYTHING, instances(family, ties), fr.conventions["fastrank"])


# Several families in one call share rankings and walks, and which documents count depends on all of them.
SOME_FAMILIES = st.lists(st.sampled_from(list(TABLE)), min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("ties", TIE_RULES)
@given(chosen=SOME_FAMILIES, batch=batches())
@example(chosen=list(TABLE), batch=as_batch([]))
@example(chosen=list(TABLE), batch=as_batch([(np.empty(0), np.empty(0))] * 3))
def test_the_engine_is_the_reference(ties: str, chosen: list[str], batch: Batch) -> None:
    metrics = tuple(metric for family in chosen for metric in instances(family, ties))
    if metrics:
        assert_equals_reference(batch, metrics, fr.conventions["fastrank"])


@pytest.mark.parametrize("ties", TIE_RULES)
@given(chosen=SOME_FAMILIES, batch=batches(grades=SIGNED_GRADES, long=False))
def test_the_engine_is_the_reference_for_labels_below_zero(ties: str, chosen: list[str], batch: Batch) -> None:
    # The tables of gains have no entry for these labels.
    metrics = tuple(
        metric for family in chosen for metric in instances(family, ties) if not isinstance(getattr(metric, "gain", None), GainTable)
    )
    if metrics:
        assert_equals_reference(batch, metrics, SIGNED)


@pytest.mark.parametrize("ties", TIE_RULES)
def test_judged_only_is_the_reference_without_the_unjudged_documents(ties: str) -> None:
    labels, scores, _ = batch = random_batch(4, 60, 12, missing=True)
    judged = ~np.isnan(labels)
    condensed = Batch(labels[judged], scores[judged], np.concatenate(([0], np.cumsum(judged)))[batch.offsets])
    metrics = tuple(metric for family in TABLE for metric in instances(family, ties))
    doc_ids = names_of_documents(batch)
    result = fr.evaluate(*batch.arguments(), metrics=metrics, doc_ids=doc_ids, judged_only=True)
    for column, metric in enumerate(metrics):
        more = {"doc_ids": doc_ids[judged].astype("U20").astype("S20")} if metric.sees_ties and ties == "docid" else {}
        expected = metric_table.reference_of(metric, **more)(*condensed)
        np.testing.assert_allclose(result.values[:, column], expected, **CLOSE, err_msg=str(metric))


@pytest.mark.parametrize("family", TABLE)
def test_labels_in_rank_order_need_no_scores(family: str) -> None:
    batch = random_batch(5, 40, 12)
    result = fr.evaluate(batch.labels, None, batch.offsets, metrics=instances(family, "average") or instances(family, "worst"))
    for metric in result.metrics:
        expected = metric_table.reference_of(metric)(batch.labels, None, batch.offsets)
        np.testing.assert_allclose(result[metric], expected, **CLOSE, err_msg=str(metric))


# --- the slow truth ------------------------------------------------------------------------------------------------------------


def short_lists() -> Batch:
    """Lists of up to 7 documents with many ties: small enough to go through every order."""
    return as_batch(
        [
            (batch.query(q).labels, batch.query(q).scores)
            for seed, n_queries, longest, n_levels in ((11, 30, 4, 2), (12, 15, 6, 3), (13, 8, 7, 2), (14, 4, 7, 1))
            for batch in [random_batch(seed, n_queries, longest, n_levels=n_levels, missing=seed != 14)]
            for q in range(n_queries)
        ]
    )


SHORT = short_lists()


def short_queries() -> Iterator[tuple[list[float | None], list[float | None]]]:
    """Labels and scores of each short list, as the slow truth takes them."""
    for q in range(SHORT.n_queries):
        labels, scores, _ = SHORT.query(q)
        yield tuple([None if np.isnan(value) else value for value in column.tolist()] for column in (labels, scores))


@pytest.mark.parametrize("family", AVERAGED)
def test_ties_by_average_are_the_mean_over_all_permutations(family: str) -> None:
    result = fr.evaluate(*SHORT.arguments(), metrics=instances(family, "average"))
    rules = {"one": 1.0, "zero": 0.0}
    for metric in result.metrics:
        nothing = rules.get(getattr(metric, "no_relevant", None), np.nan)
        found = [brute_force.expectation(metric_table.truth_of(metric, scores), labels, scores) for labels, scores in short_queries()]
        expected = [nothing if value is None else value for value in found]
        np.testing.assert_allclose(result[metric], expected, **CLOSE, err_msg=str(metric))


# AP by hits can fall when a relevant document moves up into the top k: its orders by label are not its bounds.
BOUNDED = [family for family in TABLE if families[family].sees_ties and families[family].has_bounds]


@pytest.mark.parametrize("family", BOUNDED)
def test_bounds_are_the_least_and_the_greatest_value_over_all_permutations(family: str) -> None:
    rule = "average" if family in AVERAGED else "worst"
    metrics = tuple(metric for metric in instances(family, rule) if getattr(metric, "no_relevant", "zero") == "zero")
    result = fr.evaluate(*SHORT.arguments(), metrics=metrics, bounds=True)
    for column, metric in enumerate(result.metrics):
        found = [
            brute_force.extremes(metric_table.truth_of(metric, scores), labels, scores) or (0.0, 0.0) for labels, scores in short_queries()
        ]
        least, greatest = np.array(found).T
        np.testing.assert_allclose(result.bounds.low[:, column], least, **CLOSE, err_msg=str(metric))
        np.testing.assert_allclose(result.bounds.high[:, column], greatest, **CLOSE, err_msg=str(metric))


# --- other programs ------------------------------------------------------------------------------------------------------------


def batch_for(peer: Peer, seed: int) -> Batch:
    """Seeded lists that the peer can take, with as many ties, empty queries and short lists as it can."""
    grades = (0.0, 0.0, 1.0) if peer.binary else WHOLE_GRADES
    batch = random_batch(seed, 60, 12, grades=grades, shortest=peer.shortest)
    if peer.both_classes:
        mixed = [batch.query(q)[:2] for q in range(batch.n_queries) if 0 < np.sum(batch.query(q).labels >= 1) < len(batch.query(q).labels)]
        batch = as_batch(mixed)
    return batch.untied() if peer.untied else batch


@pytest.mark.parametrize("seed", [21, 22])
@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_the_engine_is_the_peer(peer: Peer, seed: int) -> None:
    if (reason := peer.why_absent()) is not None:
        pytest.skip(reason)
    batch = batch_for(peer, seed)
    result = fr.evaluate(*batch, metrics=peer.metric, convention=peer.convention, ties=peer.ties)
    ours = result.mean()[result.names[0]] if peer.mean_only else result.values[:, 0]
    np.testing.assert_allclose(ours, peer.values(*batch), rtol=0, atol=peer.tolerance)


def test_a_library_that_cannot_load_is_named_with_the_reason() -> None:
    assert (
        metric_peers.why_absent("fastrank_no_such_library")
        == "fastrank_no_such_library cannot be loaded: No module named 'fastrank_no_such_library'"
    )


# --- long lists ----------------------------------------------------------------------------------------------------------------


def harmonic(first: int, last: int) -> float:
    return float(np.sum(1.0 / np.arange(first, last + 1)))


@pytest.mark.compiled
def test_a_query_of_a_million_documents_beside_an_empty_one() -> None:
    n, relevant = 1_000_000, np.array([7, 500_000, 999_999])
    labels = np.zeros(n, np.uint8)
    labels[relevant] = 1
    scores = -np.arange(n, dtype=np.float32)
    result = fr.evaluate(labels, scores, [0, n, n], metrics="AP,RR,nDCG,R@500001,NumRet")
    rank = relevant + 1
    expected = [
        np.sum([1, 2, 3] / rank) / 3,
        1 / 8,
        np.sum(1 / np.log2(rank + 1)) / np.sum(1 / np.log2([2, 3, 4])),
        2 / 3,
        n,
    ]
    np.testing.assert_allclose(result.values[0], expected, rtol=1e-14)
    assert result.values[1].tolist() == [0.0] * 5


@pytest.mark.parametrize("n_relevant", [300, 1])
def test_a_long_list_of_one_score_has_the_value_of_an_average_order(n_relevant: int) -> None:
    n, k = 1000, 100
    labels = np.zeros(n)
    labels[:: n // n_relevant][:n_relevant] = 1
    labels = np.where(np.cumsum(labels) <= n_relevant, labels, 0)
    assert labels.sum() == n_relevant
    result = fr.evaluate(labels, np.full(n, 0.5), metrics=f"P@{k},R@{k},nDCG@{k},AP,AUC,Concordance,RBP,PNormPush(p=1),Rprec,Success@{k}")
    share = n_relevant / n
    places = np.arange(1, n + 1)
    discount = 1 / np.log2(places + 1)
    # A relevant document at place i has on average (i - 1) (r - 1) / (n - 1) others before it.
    average_precision = np.sum(share * (1 + (places - 1) * (n_relevant - 1) / (n - 1)) / places) / n_relevant
    none_within = np.prod((n - n_relevant - np.arange(k)) / (n - np.arange(k)))
    expected = {
        f"P@{k}": share,
        f"R@{k}": k / n,
        f"nDCG@{k}": share * discount[:k].sum() / discount[: min(k, n_relevant)].sum(),
        "AP": average_precision,
        "AUC": 0.5,
        "Concordance": 0.5,
        "RBP": share * (1 - 0.8**n),
        "PNormPush(p=1)": 0.5,
        "Rprec": share,
        f"Success@{k}": 1 - none_within,
    }
    np.testing.assert_allclose(list(result.mean().values()), list(expected.values()), rtol=1e-12)


def test_the_first_of_a_thousand_tied_documents_is_relevant_with_the_same_chance_at_every_rank() -> None:
    n = 1000
    labels = np.zeros(n)
    labels[123] = 1
    result = fr.evaluate(labels, np.zeros(n), metrics="RR,RR@10,ERR")
    stop = (2**1 - 1) / 2**4
    np.testing.assert_allclose(result.values[0], [harmonic(1, n) / n, harmonic(1, 10) / n, stop * harmonic(1, n) / n], rtol=1e-13)
