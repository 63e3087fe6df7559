"""Click models: probabilities that sum to 1, the worked numbers, the boundary, and files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import click_models
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conformance import FOLDER, read_json

import fastrank as fr
from fastrank.clicks import ClickLog, ClickModel, fit, probabilities, score, simulate
from fastrank.errors import InputError

TINY = "clicks/expected.json"
needs_data = pytest.mark.skipif(not FOLDER.is_dir(), reason="no conformance data: ../shared/conformance is not beside this checkout")


def every_click_vector(docs: list[Any], positions: list[int] | None = None) -> tuple[ClickLog, np.ndarray]:
    """A session for each of the 2^L ways to click on a list."""
    n = len(docs)
    vectors = np.array(list(itertools.product((0, 1), repeat=n)), np.uint8)
    position = None if positions is None else np.tile(positions, len(vectors))
    return ClickLog(np.arange(len(vectors) + 1) * n, docs * len(vectors), vectors.ravel(), position=position), vectors


def joint(model: ClickModel, log: ClickLog, vectors: np.ndarray) -> np.ndarray:
    """The probability of each click vector: the product of the conditional ones."""
    given = probabilities(model, log).given.reshape(vectors.shape)
    return np.where(vectors, given, 1 - given).prod(axis=1)


# --- probabilities --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", click_models.NAMES)
@pytest.mark.parametrize("positions", [[1], [1, 2, 3, 4, 5, 6, 7, 8], [2, 3, 5, 9]])
def test_click_vectors_sum_to_one_and_their_marginals_are_the_full_probabilities(name: str, positions: list[int]) -> None:
    rng = np.random.default_rng(5)
    docs = list("gcaebdfh")[: len(positions)]
    log, vectors = every_click_vector(docs, positions)
    model = click_models.draw_model(name, rng, sorted("abcdefgh"), 9)
    chance = joint(model, log, vectors)
    assert chance.sum() == pytest.approx(1, abs=1e-14)
    full = probabilities(model, log).full.reshape(vectors.shape)
    assert chance @ vectors == pytest.approx(full[0], abs=1e-14)
    assert (full == full[0]).all()


@pytest.mark.parametrize("name", click_models.NAMES)
def test_conditional_probabilities_are_those_of_the_table(name: str) -> None:
    rng = np.random.default_rng(6)
    log = click_models.draw_log(rng, 60)
    ids = {"docs": log.docs.take(log.pair_doc), "queries": log.queries.take(log.pair_query)}
    model = click_models.draw_model(name, rng, ids["docs"], 5, ids["queries"])
    expected = [p for pairs, ranks, clicks, _ in click_models.sessions(log) for p in click_models.conditional(model, pairs, ranks, clicks)]
    assert probabilities(model, log).given == pytest.approx(expected, abs=1e-14)


def test_a_click_that_was_certain_and_did_not_come_leaves_nothing_examined() -> None:
    log = ClickLog([0, 2], ["a", "b"], [0, 0])
    assert probabilities(ClickModel("sdbn", attr=[1, 0.5], sat=[0, 0], docs=["a", "b"]), log).given.tolist() == [1, 0]


# --- worked numbers -------------------------------------------------------------------------------------------------------------


def tiny(name: str) -> tuple[dict[str, Any], ClickModel]:
    """A worked example and its model."""
    example = read_json(TINY)["tiny"][name]
    docs = list("abc")[: len(example["attr"])]
    parameters: dict[str, Any] = {
        "PBM": {"exam": example.get("theta")},
        "CM": {},
        "DCM": {"cont": [example.get("lambda1"), 0.5]},
        "UBM": {"exam": [[example.get("gamma_1_none"), np.nan, np.nan], [example.get("gamma_2_none"), example.get("gamma_2_1"), np.nan]]},
        "DBN": {"sat": example.get("sat"), "cont": example.get("gamma")},
    }[name.rstrip("3")]
    return example, ClickModel(name.rstrip("3").lower(), attr=example["attr"], docs=docs, **parameters)


@needs_data
def test_the_worked_example_of_pbm() -> None:
    example, model = tiny("PBM")
    log = ClickLog([0, 2], ["a", "b"], example["clicks"])
    found = score(model, log)
    assert probabilities(model, log).given == pytest.approx(example["p"], abs=1e-9)
    assert (found.ll_session, found.ll_doc) == pytest.approx((example["ll_session"], example["ll_per_doc"]), abs=1e-9)
    assert found.ppl_at == pytest.approx(example["ppl_at"], abs=1e-9)
    assert found.cond_ppl_at == pytest.approx(example["ppl_at"], abs=1e-9)
    assert (found.ppl, found.cond_ppl) == pytest.approx((example["ppl"], example["ppl"]), abs=1e-9)
    assert (found.n_at.tolist(), found.unseen, found.clipped) == ([1, 1], 0, 0)


@needs_data
@pytest.mark.parametrize("name", ["CM", "DCM", "UBM"])
def test_the_worked_full_probabilities(name: str) -> None:
    example, model = tiny(name)
    log, vectors = every_click_vector(["a", "b"])
    assert probabilities(model, log).full[:2] == pytest.approx(example["full"], abs=1e-9)
    given = dict(zip(map(tuple, vectors.tolist()), probabilities(model, log).given.reshape(-1, 2)[:, 1], strict=True))
    if name == "CM":
        assert joint(model, log, vectors)[0] == pytest.approx(example["P(no click)"], abs=1e-9)
    if name == "DCM":
        assert (given[1, 0], given[0, 0]) == pytest.approx((example["P(C2=1|C1=1)"], example["P(C2=1|C1=0)"]), abs=1e-9)


@needs_data
@pytest.mark.parametrize("name", ["DBN", "DBN3"])
def test_the_worked_joint_probabilities_of_dbn(name: str) -> None:
    example, model = tiny(name)
    log, vectors = every_click_vector(list("abc")[: len(example["attr"])])
    expected = [example["joint"]["".join(map(str, vector))] for vector in vectors.tolist()]
    assert joint(model, log, vectors) == pytest.approx(expected, abs=1e-9)
    if name == "DBN":
        assert probabilities(model, log).full[1] == pytest.approx(example["full_C2"], abs=1e-9)


@needs_data
def test_the_worked_expectation_behind_a_skip() -> None:
    # One step from 1/2 without a prior: what a document that was skipped once is expected to be.
    example = read_json(TINY)["tiny"]["PBM_E_step_noclick"]
    model = fit(ClickLog([0, 1], ["a"], [0]), "pbm", prior=(0, 0), max_iter=1, accelerate=False)
    assert (example["attr"], example["theta"]) == (0.5, 0.5)
    assert model.attr == pytest.approx([example["P(A=1|C=0)"]], abs=1e-9)
    assert model.exam == pytest.approx([example["P(E=1|C=0)"]], abs=1e-9)


# --- documents and ranks --------------------------------------------------------------------------------------------------------


def test_documents_and_ranks_that_a_model_has_not_seen_have_its_prior_mean_and_are_told() -> None:
    model = ClickModel("pbm", attr=[0.4], exam=[0.9, 0.8], docs=["a"], unseen=(0.2, 0.7))
    log = ClickLog([0, 3, 4], ["a", "x", "y", "x"], [0, 1, 0, 1], weight=[1, 2])
    assert probabilities(model, log).given == pytest.approx([0.4 * 0.9, 0.2 * 0.8, 0.2 * 0.7, 0.2 * 0.9], abs=1e-15)
    assert score(model, log).unseen == (1 + 1 + 2) / 5


@pytest.mark.parametrize("name", ["rctr", "dcm", "ubm"])
def test_ranks_below_the_last_one_of_a_model_are_unseen(name: str) -> None:
    model = click_models.draw_model(name, np.random.default_rng(1), list("abc"), 2)
    log = ClickLog([0, 3], list("abc"), [0, 0, 0])
    chance = probabilities(model, log)
    assert score(model, log).unseen == pytest.approx(1 / 3)
    if name == "rctr":
        assert chance.given[2] == 0.5


def test_a_model_without_documents_leaves_every_document_unseen() -> None:
    log = ClickLog([0, 2], ["a", "b"], [0, 0])
    model = ClickModel("sdbn", attr=[], sat=[], docs=pa.array([], pa.string()))
    assert score(model, log).unseen == 1
    assert probabilities(model, log).given[0] == 0.5


def test_pairs_are_found_by_query_and_document_and_by_number_or_its_text() -> None:
    model = ClickModel("dctr", attr=[0.1, 0.2, 0.3], docs=["1", "2", "1"], queries=["a", "a", "b"])
    log = ClickLog([0, 2, 4], [2, 1, 1, 2], [0, 0, 0, 0], query=["a", "b"])
    assert probabilities(model, log).given.tolist() == [0.2, 0.1, 0.3, 0.5]
    of_every_query = ClickModel("dctr", attr=[0.1, 0.2], docs=[1, 2])
    assert probabilities(of_every_query, log).given.tolist() == [0.2, 0.1, 0.1, 0.2]
    with pytest.raises(InputError, match="the log has none"):
        probabilities(model, ClickLog([0, 1], ["1"], [0]))


def test_categories_that_hold_a_value_twice_are_compared_by_value() -> None:
    docs = pa.DictionaryArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "a", "b"]))
    log = ClickLog([0, 2], ["b", "a"], [0, 0])
    assert probabilities(ClickModel("dctr", attr=[0.1, 0.2], docs=docs), log).given.tolist() == [0.2, 0.1]
    with pytest.raises(InputError, match="docs must not be null"):
        ClickModel("dctr", attr=[0.1], docs=pa.DictionaryArray.from_arrays(pa.array([None], pa.int32()), pa.array(["a"])))


# --- the boundary ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "PBM"}, "model must be one of gctr, rctr, dctr, pbm"),
        ({"name": "pbm", "attr": [0.5], "docs": ["a"]}, "pbm needs exam="),
        ({"name": "cm", "attr": [0.5], "sat": [0.5], "docs": ["a"]}, "cm has no sat="),
        ({"name": "cm", "attr": [0.5, 1.5], "docs": ["a", "b"]}, r"attr must be probabilities: attr\[1\] is 1.5"),
        ({"name": "cm", "attr": [0.5, np.nan], "docs": ["a", "b"]}, r"attr\[1\] is nan"),
        ({"name": "cm", "attr": pa.array([0.5, None]), "docs": ["a", "b"]}, r"attr\[1\] is missing"),
        ({"name": "cm", "attr": [[0.5]], "docs": ["a"]}, "attr must be one list of numbers"),
        ({"name": "cm", "attr": [0.5], "docs": ["a", "b"]}, "docs must have one entry per entry of attr, 1, not 2"),
        ({"name": "cm", "attr": [0.5, 0.5], "docs": ["a", "a"]}, "'a' stands again at 1"),
        ({"name": "cm", "attr": [0.5] * 3, "docs": list("aba"), "queries": list("qrq")}, "'a' of query 'q' stands again at 2"),
        ({"name": "sdbn", "attr": [0.5], "sat": [0.5, 0.5], "docs": ["a"]}, "sat must have one entry per entry of attr"),
        ({"name": "ccm", "attr": [0.5], "cont": [0.5], "docs": ["a"]}, "cont must be 3 of numbers"),
        ({"name": "ubm", "attr": [0.5], "exam": [[0.5]], "docs": ["a"]}, r"shape \[K, K \+ 1\]"),
        ({"name": "ubm", "attr": [0.5], "exam": [[np.nan, np.nan]], "docs": ["a"]}, r"exam\[0, 0\] is nan"),
        ({"name": "gctr", "exam": 0.5, "unseen": 0.5}, "unseen must be two probabilities"),
        ({"name": "gctr", "exam": 0.5, "unseen": (0.5, 2)}, "unseen must be two probabilities"),
    ],
)
def test_a_model_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ClickModel(**arguments)


def test_documents_without_ids_are_numbered() -> None:
    log = ClickLog([0, 2], [1, 0], [0, 0])
    assert probabilities(ClickModel("pbm", attr=[0.4, 0.6], exam=[1, 0.5]), log).given.tolist() == [0.6, 0.2]


def test_a_model_keeps_nothing_that_can_be_written_to() -> None:
    attr = np.array([0.5])
    model = ClickModel("cm", attr=attr, docs=["a"])
    attr[0] = 0
    assert model.attr is not None
    assert model.attr.tolist() == [0.5]
    with pytest.raises(ValueError, match="read-only"):
        model.attr[0] = 1


def test_models_tell_what_they_are() -> None:
    assert repr(ClickModel("gctr", exam=0.3)) == "ClickModel('gctr')"
    assert repr(ClickModel("cm", attr=[0.5], docs=["a"], queries=["q"])) == "ClickModel('cm', 1 pair of query and document)"
    assert (
        repr(ClickModel("rctr", exam=[0.3, 0.2], n_iterations=3, converged=False))
        == "ClickModel('rctr', 2 ranks, 3 iterations, not converged)"
    )


# --- documents ranked -----------------------------------------------------------------------------------------------------------


def test_documents_are_ranked_by_attraction_times_satisfaction() -> None:
    ids = {"docs": ["a", "b", "a"], "queries": ["q", "q", "r"]}
    model = ClickModel("dbn", attr=[0.9, 0.5, 0.4], sat=[0.2, 0.8, 0.5], cont=0.9, **ids)
    table = model.scores()
    assert table.column_names == ["query_id", "doc_id", "score"]
    assert table["score"].to_pylist() == [0.9 * 0.2, 0.5 * 0.8, 0.4 * 0.5]
    assert fr.evaluate_run({"q": {"b": 1}, "r": {"a": 1}}, table, "RR").mean() == {"RR": 1.0}
    labels = table.append_column("label", pa.array([0, 1, 1]))
    judged = fr.evaluate_table(labels, "RR")
    assert isinstance(judged, fr.Evaluation)
    assert judged.mean() == {"RR": 1.0}


def test_a_model_without_documents_cannot_rank_them() -> None:
    assert ClickModel("pbm", attr=[0.5], exam=[1], docs=["a"]).scores().column_names == ["doc_id", "score"]
    with pytest.raises(InputError, match="gctr has no parameters of documents"):
        ClickModel("gctr", exam=0.5).scores()


# --- files ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", click_models.NAMES)
@pytest.mark.parametrize(("docs", "queries"), [(list("abc"), None), ([10, 20, 10], ["q", "q", "r"])])
@pytest.mark.parametrize("kind", ["parquet", "npz"])
def test_a_saved_model_comes_back_to_the_last_bit(tmp_path: Path, name: str, docs: list[Any], queries: list[Any] | None, kind: str) -> None:
    drawn = click_models.draw_model(name, np.random.default_rng(2), docs, 3, queries)
    fields = {kind: getattr(drawn, kind) for kind in ("attr", "sat", "exam", "cont")}
    ids = {} if drawn.docs is None else {"docs": docs, "queries": queries}
    about: dict[str, Any] = {"unseen": (0.1, 1 / 3), "objective": [-2.5, -1 / 3], "n_iterations": 2, "converged": False}
    model = ClickModel(name, **fields, **ids, **about)
    model.save(tmp_path / f"model.{kind}")
    again = ClickModel.load(tmp_path / f"model.{kind}")
    for field, array in fields.items():
        assert np.array_equal(np.asarray(getattr(again, field), float), np.asarray(array, float), equal_nan=True), field
    assert again.name == name
    assert [again.objective.tolist(), again.unseen, again.n_iterations, again.converged] == [about["objective"], about["unseen"], 2, False]
    log = ClickLog(
        [0, 3, 5], [*sorted(set(docs)), "x", *sorted(set(docs))][:5] if queries is None else [10, 20, 30, 20, 10], [0] * 5, ["q", "r"]
    )
    assert np.array_equal(simulate(log, again, 1), simulate(log, model, 1))
    assert np.array_equal(probabilities(again, log), probabilities(model, log))


def test_an_npz_file_holds_plain_arrays_and_no_pickle(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    ClickModel("sdbn", attr=[0.9, 0.5], sat=[0.2, 0.8], docs=["a", "é"], queries=[b"q", b"r"]).save(path)
    with np.load(path, allow_pickle=False) as arrays:
        held = {name: arrays[name].tolist() for name in arrays.files if name != "about"}
    assert held == {"query_id": [b"q", b"r"], "doc_id": ["a", "é"], "attr": [0.9, 0.5], "sat": [0.2, 0.8]}
    again = ClickModel.load(path)
    assert (again.docs.to_pylist(), again.queries.to_pylist()) == (["a", "é"], [b"q", b"r"])


def test_an_npz_file_refuses_what_it_cannot_hold_and_is_refused_when_damaged(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    with pytest.raises(InputError, match=r"doc_id holds ids that an \.npz file cannot keep"):
        ClickModel("pbm", attr=[0.5], exam=[1], docs=["a\0"]).save(path)
    ClickModel("pbm", attr=[0.5], exam=[1], docs=["a"]).save(path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match="cannot be loaded"):
        ClickModel.load(path)
    np.savez(path, a=[1])
    with pytest.raises(InputError, match="no saved click model"):
        ClickModel.load(path)
    np.savez(path, a=np.array([{}]))
    with pytest.raises(InputError, match="cannot be loaded: Object arrays"):
        ClickModel.load(path)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.parquet"
    with pytest.raises(InputError, match="cannot be loaded: No such file"):
        ClickModel.load(path)
    path.write_bytes(b"PAR1 and nothing more")
    with pytest.raises(InputError, match="cannot be loaded"):
        ClickModel.load(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(InputError, match="no saved click model"):
        ClickModel.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"format": 2}, "format 2, and this version reads format 1"), ({"cont": None}, "dbn needs cont="), ({"name": "xyz"}, "xyz")],
)
def test_a_file_of_another_version_or_a_damaged_one_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "model.parquet"
    ClickModel("dbn", attr=[0.5], sat=[0.5], cont=0.9, docs=["a"]).save(path)
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"fastrank.clicks"]) | change
    pq.write_table(table.replace_schema_metadata({b"fastrank.clicks": json.dumps(about)}), path)
    with pytest.raises(InputError, match=message):
        ClickModel.load(path)
