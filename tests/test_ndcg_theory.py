"""The study of NDCG: what its figures show holds of the numbers behind them, and its page can be written."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
streams = pytest.importorskip("benchmarks.ndcg_theory.streams", reason="the benchmarks are not in this distribution")

from benchmarks.ndcg_theory import drawing, numbers, page, study  # noqa: E402

pytestmark = pytest.mark.repository


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> study.Study:
    return study.run(study.QUICK, tmp_path_factory.mktemp("no LETOR file here"))


@pytest.mark.slow
def test_the_figures_show_what_the_page_says(found: study.Study) -> None:
    claims = study.claims(found.curves)
    assert {claim for claim, holds in claims.items() if not holds} == set()
    assert {claim[0] for claim in claims} >= set("1234")


@pytest.mark.slow
def test_what_is_measured_agrees_with_theory_where_the_whole_list_counts(found: study.Study) -> None:
    for row in found.rows:
        if row.discount != "1/r":
            # Ten simulated lists and twenty judged queries: both have an error of about that of the judged mean.
            assert abs(row.measured - row.simulated) < 0.02, row


@pytest.mark.slow
def test_the_page_and_its_figures_are_written(found: study.Study, tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    paths = drawing.draw(found.curves, folder, "generated")
    assert len(paths) == 8
    assert all(path.stat().st_size < 50_000 and "</svg>" in path.read_text() for path in paths)
    text = page.page(
        study.Study(found.curves, found.rows, found.curves),
        [numbers.Case("log2", None, 0.96, 0.01, 0.964, 1.0, -0.04, "1/log n", -0.6, 1.0)],
        "x",
    )
    assert "$" not in text.replace("fmt", "")
    assert "| log2 | 0.960000 ± 0.010000 | 0.964 | 0.4 |" in text


def test_labels_are_clicks_in_three_steps() -> None:
    documents = streams.generated(2, 3_000)
    shares = np.bincount(documents.labels) / 6_000
    assert len(shares) == 3
    assert (shares > 0.03).all()
    assert documents.part(1, 2).thinned(10, np.random.default_rng(0)).offsets.tolist() == [0, 10]


def test_an_absent_letor_file_is_left_out(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    assert streams.letor(folder) is None
    (folder / "rank.train").write_text("2 1:0.5 3:1\n0 2:0.5\n1 1:1.5\n")
    (folder / "rank.train.query").write_text("2\n1\n")
    found = streams.letor(folder)
    assert found.labels.tolist() == [2, 0, 1]
    assert found.offsets.tolist() == [0, 2, 3]
    assert found.features[:, 1].std() == pytest.approx(1.0)
