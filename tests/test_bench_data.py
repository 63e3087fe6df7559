"""The seeded data: the committed sample can be made again, and each shape is what its name says."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from bench_data import make

COMMITTED = Path(make.__file__).parent
TEXT_FILES = ("sample.letor", "sample.scores", "sample.group", "sample.qrels", "sample.run", "baseline.run", "manifest.json")

pytestmark = pytest.mark.repository


@pytest.fixture(scope="module")
def remade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("sample")
    make.write_sample(out)
    return out


@pytest.fixture(scope="module")
def manifest() -> dict:
    return json.loads((COMMITTED / "manifest.json").read_text())


@pytest.mark.parametrize("name", TEXT_FILES)
def test_remaking_a_text_file_gives_the_committed_bytes(remade: Path, name: str) -> None:
    assert (remade / name).read_bytes() == (COMMITTED / name).read_bytes()


@pytest.mark.parametrize("name", ["sample.parquet", "clicks.parquet"])
def test_remaking_a_parquet_file_gives_the_committed_table(remade: Path, name: str) -> None:
    assert pq.read_table(remade / name).equals(pq.read_table(COMMITTED / name))


def test_clicks_fall_with_the_position_and_rise_with_the_label() -> None:
    sessions = pq.read_table(COMMITTED / "clicks.parquet")
    shown = [(k, click) for clicks in sessions["clicks"].to_pylist() for k, click in enumerate(clicks)]
    rates = [np.mean([click for place, click in shown if place == k]) for k in (0, 3, 7)]
    assert rates[0] > 2 * rates[1] > 2 * rates[2]


def test_the_manifest_describes_every_committed_file(manifest: dict) -> None:
    assert sorted(manifest["files"]) == sorted(["baseline.run", "clicks.parquet", *(path.name for path in COMMITTED.glob("sample.*"))])
    for name, facts in manifest["files"].items():
        content = (COMMITTED / name).read_bytes()
        if name.endswith(".parquet"):
            table = pq.read_table(COMMITTED / name)
            assert facts["content_sha256"] == make.content_sha256(table)
            assert facts["rows"] == table.num_rows
            assert facts["columns"] == {field.name: str(field.type) for field in table.schema}
        else:
            assert facts["sha256"] == hashlib.sha256(content).hexdigest()
            assert facts["rows"] == content.count(b"\n")


def test_the_sample_is_small() -> None:
    assert sum(path.stat().st_size for path in COMMITTED.glob("sample.*")) < 200_000


def test_the_sample_has_ties_three_barren_queries_and_constant_columns(manifest: dict) -> None:
    table = make.sample_table()
    assert manifest["n_queries"] == 200
    assert manifest["queries_with_nothing_relevant"] == 3
    per_query = table.group_by("query_id").aggregate(
        [("segment", "count_distinct"), ("weight", "count_distinct"), ("doc_id", "count_distinct")]
    )
    assert set(per_query["segment_count_distinct"].to_pylist()) == {1}
    assert set(per_query["weight_count_distinct"].to_pylist()) == {1}
    assert sum(per_query["doc_id_count_distinct"].to_pylist()) == table.num_rows
    distinct_scores = table.group_by(["query_id", "score"]).aggregate([]).num_rows
    assert 0.9 * table.num_rows < distinct_scores < table.num_rows
    assert set(table["segment"].to_pylist()) == {"head", "tail"}


def test_the_baseline_ranks_the_documents_of_the_sample_otherwise() -> None:
    ours, theirs = ([line.split() for line in (COMMITTED / name).read_text().splitlines()] for name in ("sample.run", "baseline.run"))
    assert sorted((f[0], f[2]) for f in ours) == sorted((f[0], f[2]) for f in theirs)
    assert [f[2] for f in ours] != [f[2] for f in theirs]


def test_every_form_of_the_sample_holds_the_same_rows() -> None:
    table = pq.read_table(COMMITTED / "sample.parquet")
    rows = [(row["query_id"], row["doc_id"], row["label"], np.float32(row["score"])) for row in table.to_pylist()]

    def fields(name: str) -> list[list[str]]:
        return [line.split() for line in (COMMITTED / name).read_text().splitlines()]

    assert [(f[0], f[2], int(f[3])) for f in fields("sample.qrels")] == [row[:3] for row in rows]
    letor = [(f[1].removeprefix("qid:"), f[3].removeprefix("#"), int(f[0])) for f in fields("sample.letor")]
    assert letor == [row[:3] for row in rows]
    assert [np.float32(f[0]) for f in fields("sample.scores")] == [row[3] for row in rows]
    queries = [row[0] for row in rows]
    assert [int(f[0]) for f in fields("sample.group")] == [queries.count(query) for query in dict.fromkeys(queries)]
    run = fields("sample.run")
    assert sorted((f[0], f[2], np.float32(f[4])) for f in run) == sorted((row[0], row[1], row[3]) for row in rows)
    for above, below in itertools.pairwise(run):
        if above[0] == below[0]:
            assert float(above[4]) >= float(below[4])
            assert int(below[3]) == int(above[3]) + 1


@pytest.mark.parametrize("name", make.SHAPES)
def test_a_shape_is_the_same_for_the_same_seed_and_not_for_another(name: str) -> None:
    first, again, other = make.generate(name, 50, seed=1), make.generate(name, 50, seed=1), make.generate(name, 50, seed=2)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.scores[:1000], other.scores[:1000])


@pytest.mark.parametrize("name", make.SHAPES)
def test_a_shape_is_a_valid_ragged_batch(name: str) -> None:
    labels, scores, offsets = make.generate(name, 50)
    assert (labels.dtype, scores.dtype, offsets.dtype) == (np.uint8, np.float32, np.int64)
    assert offsets[0] == 0
    assert len(offsets) == 51
    assert offsets[-1] == len(labels) == len(scores)
    assert (np.diff(offsets) >= 1).all()
    assert labels.max() <= 4
    assert np.isfinite(scores).all()


def test_the_blocks_of_generation_do_not_show_in_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = make.generate("lognormal", 300)
    monkeypatch.setattr(make, "BLOCK", 97)
    blocks = make.generate("lognormal", 300)
    assert all(np.array_equal(a, b) for a, b in zip(whole, blocks, strict=True))


def test_each_shape_is_what_its_name_says() -> None:
    def lengths(name: str) -> np.ndarray:
        return np.diff(make.generate(name, 2000).offsets)

    def relevant(name: str) -> float:
        return float((make.generate(name, 200).labels > 0).mean())

    for name, length in (("fixed20", 20), ("fixed100", 100), ("fixed1000", 1000)):
        assert set(np.diff(make.generate(name, 30).offsets)) == {length}
    assert lengths("zipf").max() > 50 * np.median(lengths("zipf"))
    assert lengths("lognormal").max() > 10 * np.median(lengths("lognormal"))
    assert relevant("sparse") <= 1 / 1000
    assert relevant("dense") > 0.5
    for length in make.LENGTHS:
        assert set(np.diff(make.generate(f"tenth{length}", 5).offsets)) == {length}
    assert relevant("tenth1000") == pytest.approx(0.1, rel=0.05)
    assert relevant("five1000") == pytest.approx(0.005, rel=0.1)
    assert lengths("huge")[0] == 1_000_000
    ties = make.generate("ties", 20)
    assert all(len(set(part)) < 25 for part in np.split(ties.scores, ties.offsets[1:-1]))


def test_queries_with_nothing_relevant_are_as_many_as_the_shape_says() -> None:
    labels, _, offsets = make.generate("fixed20", 1000)
    barren = np.maximum.reduceat(labels, offsets[:-1]) == 0
    assert barren.sum() == round(make.SHAPES["fixed20"].barren * 1000)


def test_the_command_writes_what_it_prints(tmp_path: Path) -> None:
    command = [sys.executable, make.__file__, "ties", "--out", str(tmp_path), "--queries", "5", "--formats", "parquet,letor,trec"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {f"ties.{suffix}" for suffix in ("parquet", "letor", "scores", "group", "qrels", "run")}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert {Path(line.split()[0]).name for line in printed.splitlines()} == names


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["ties", "--out", "x", "--queries", "0"], "--queries must be at least 1"),
        (["ties", "--out", "x", "--formats", "csv"], "csv is not one of parquet, letor, trec"),
        (["ties"], "--out"),
        (["nope", "--out", "x"], "invalid choice"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        make.main(arguments)
    assert stop.value.code == 2
    assert complaint in capsys.readouterr().err
