"""`fastrank.training.torch.RankingMetric`: values, batches of every form, states, processes, loaders and threads."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrank as fr

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch_processes import METRICS, WAYS, drawn, without_torchmetrics  # noqa: E402

from fastrank.training import torch as ours  # noqa: E402
from fastrank.training.totals import aggregates, totals_of  # noqa: E402


@pytest.fixture(params=["torchmetrics", "plain"], scope="module")
def metric_class(request: pytest.FixtureRequest) -> Any:
    if request.param == "plain":
        return without_torchmetrics().RankingMetric
    pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
    return ours.RankingMetric


SCORES, LABELS, IDS = drawn()
OFFSETS = np.arange(0, 421, 7)


def expected(metrics: Any = METRICS, **options: Any) -> dict[str, float]:
    return fr.evaluate(LABELS, SCORES, OFFSETS, metrics=metrics, **options).aggregate()


def items(values: dict[str, Any]) -> dict[str, float]:
    return {name: value.item() for name, value in values.items()}


# --- values ----------------------------------------------------------------------------------------------------------------------


def test_it_is_a_torchmetrics_metric_where_that_is_installed() -> None:
    torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
    assert issubclass(ours.RankingMetric, torchmetrics.Metric)
    assert not issubclass(without_torchmetrics().RankingMetric, torchmetrics.Metric)


def test_every_form_of_batch_gives_the_bits_of_evaluate(metric_class: Any) -> None:
    scores, labels, ids = map(torch.from_numpy, (SCORES, LABELS, IDS))
    for first in (7, 70, 420):  # documents a batch
        forms = {
            "padded": lambda s, y, q: ((s.reshape(-1, 7), y.reshape(-1, 7)), {}),
            "offsets": lambda s, y, q: ((s, y), {"offsets": torch.arange(0, len(s) + 1, 7)}),
            "indexes": lambda s, y, q: ((s, y, q), {}),
            "shuffled": lambda s, y, q: ((s.flip(0), y.flip(0)), {"indexes": q.flip(0)}),
        }
        for name, form in forms.items():
            for whole in (False, True):
                metric = metric_class(METRICS, whole_queries=whole)
                for start in range(0, 420, first):
                    data, named = form(*(column[start : start + first] for column in (scores, labels, ids)))
                    metric.update(*data, **named)
                assert items(metric.compute()) == expected(), name


def test_queries_that_batches_cut_are_put_together(metric_class: Any) -> None:
    metric = metric_class("nDCG@5")
    order = np.random.default_rng(0).permutation(420)
    for rows in np.array_split(order, 13):
        metric.update(torch.from_numpy(SCORES[rows]), torch.from_numpy(LABELS[rows]), torch.from_numpy(IDS[rows]))
    assert metric.compute().item() == expected("nDCG@5")["nDCG@5"]


def test_padding_is_left_out_wherever_it_stands(metric_class: Any) -> None:
    generator = np.random.default_rng(1)
    mask = generator.random((60, 7)) < 0.6
    metric = metric_class(("nDCG@5", "RR"))
    metric.update(torch.from_numpy(SCORES.reshape(60, 7)), torch.from_numpy(LABELS.reshape(60, 7)), mask=torch.from_numpy(mask))
    there = mask.ravel()
    result = fr.evaluate(LABELS[there], SCORES[there], sizes=mask.sum(axis=1), metrics=("nDCG@5", "RR"))
    assert items(metric.compute()) == result.mean()


def test_one_metric_gives_a_tensor_without_dimensions_and_several_a_dict(metric_class: Any) -> None:
    one, several = metric_class("RR"), metric_class(["RR", "AP"])
    for metric in (one, several):
        metric.update(torch.tensor([0.1, 0.3, 0.2]), torch.tensor([1, 0, 1]))
    assert one.compute().shape == ()
    assert one.compute().item() == 1 / 2
    assert set(several.compute()) == {"RR", "AP"}


def test_nothing_seen_is_nan(metric_class: Any) -> None:
    metric = metric_class("RR")
    with pytest.warns(UserWarning, match="compute") if hasattr(metric, "sync_context") else torch.no_grad():
        assert np.isnan(metric.compute().item())


def test_a_batch_without_documents_adds_no_query(metric_class: Any) -> None:
    metric = metric_class("RR")
    metric.update(torch.tensor([[0.3, 0.1]]), torch.tensor([[1, 0]]))
    metric.update(torch.zeros(0), torch.zeros(0), torch.zeros(0, dtype=torch.int64))
    assert metric.compute().item() == 1


def test_rules_for_queries_with_nothing_to_find(metric_class: Any) -> None:
    scores, labels = torch.tensor([[0.3, 0.1], [0.2, 0.5]]), torch.tensor([[0, 0], [1, 0]])
    for rule, mean in {"zero": 1 / 4, "one": 3 / 4, "skip": 1 / 2, "nan": np.nan}.items():
        metric = metric_class("RR", no_relevant=rule)
        metric.update(scores, labels)
        assert np.array_equal(metric.compute().item(), mean, equal_nan=True), rule


@pytest.mark.parametrize("kind", ["bfloat16", "float16", "float32", "float64"])
def test_narrow_floats_are_compared_as_they_are(metric_class: Any, kind: str) -> None:
    scores = torch.from_numpy(SCORES.reshape(60, 7)).to(getattr(torch, kind))
    metric = metric_class("nDCG@5")
    metric.update(scores, torch.from_numpy(LABELS.reshape(60, 7)))
    assert metric.compute().item() == fr.evaluate(LABELS.reshape(60, 7), scores.double().numpy(), metrics="nDCG@5").mean()["nDCG@5"]


def test_equal_scores_of_narrow_floats_are_ties(metric_class: Any) -> None:
    scores = torch.tensor([[1.0, 1.001]], dtype=torch.bfloat16)  # the same number there
    metric = metric_class("RR")
    metric.update(scores, torch.tensor([[1, 0]]))
    assert metric.compute().item() == (1 + 1 / 2) / 2


def test_a_tensor_is_moved_from_its_device_once(metric_class: Any) -> None:
    class Counted(torch.Tensor):  # type: ignore[misc]
        moves = 0

        def cpu(self) -> Any:
            Counted.moves += 1
            return self.as_subclass(torch.Tensor)

    tensors = [torch.from_numpy(column.copy()).as_subclass(Counted) for column in (SCORES, LABELS, IDS)]
    metric_class(METRICS, whole_queries=True).update(*tensors)
    assert Counted.moves == 3


def test_scores_that_carry_a_gradient_are_taken(metric_class: Any) -> None:
    metric = metric_class("RR")
    metric.update(torch.tensor([[0.3, 0.1]], requires_grad=True), torch.tensor([[0, 1]]))
    assert metric.compute().item() == 1 / 2


@pytest.mark.parametrize("name", ["NormalizedDCG", "MRR", "MAP", "Precision", "Recall", "HitRate"])
def test_the_values_of_torchmetrics(name: str) -> None:
    retrieval = pytest.importorskip("torchmetrics.retrieval", reason="torchmetrics is not installed")
    names = {"NormalizedDCG": "nDCG", "MRR": "RR", "MAP": "AP", "Precision": "P", "Recall": "R", "HitRate": "Success"}
    scores = torch.from_numpy(SCORES).float()  # some are below 0: not retrieved, in four of the six
    labels = torch.from_numpy(LABELS) if name == "NormalizedDCG" else torch.from_numpy(LABELS > 1).long()
    ids = torch.from_numpy(IDS)
    theirs = getattr(retrieval, f"Retrieval{name}")(top_k=5)
    mine = ours.RankingMetric(f"{names[name]}@5", convention="torchmetrics")
    for metric in (theirs, mine):
        metric.update(scores, labels, indexes=ids)
    assert mine.compute().item() == pytest.approx(theirs.compute().item(), abs=1e-6)


def test_the_values_of_scikit_learn() -> None:
    sklearn_metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    scores, labels = np.round(SCORES.reshape(60, 7), 1), LABELS.reshape(60, 7)
    metric = ours.RankingMetric("nDCG@5", convention="sklearn")
    metric.update(torch.from_numpy(scores), torch.from_numpy(labels))
    assert metric.compute().item() == pytest.approx(sklearn_metrics.ndcg_score(labels, scores, k=5), abs=1e-12)


# --- states ----------------------------------------------------------------------------------------------------------------------


def test_exact_sums_survive_being_split_into_limbs() -> None:
    generator = np.random.default_rng(3)
    gain = {0: 0.0, 1: 1e-300, 2: 1e300, 3: 0.1}
    labels = generator.integers(0, 4, (50, 6))
    metrics = (fr.metrics.DCG(gain=gain), fr.metrics.IDCG(gain=gain), *fr.parse_metrics(METRICS))
    whole = fr.evaluate(labels, metrics=metrics)
    parts = [totals_of(fr.evaluate(part, metrics=metrics)) for part in np.array_split(labels, 7)]
    assert aggregates(whole.metrics, sum(parts)) == list(whole.aggregate().values())


def test_negative_sums_survive_being_split_into_limbs() -> None:
    whole = fr.evaluate([[0, 0, 1], [0, 0, 0]], metrics="Utility")
    assert whole.aggregate()["Utility"] < 0
    assert aggregates(whole.metrics, totals_of(whole)) == list(whole.aggregate().values())


def test_reset_forgets_and_forward_gives_the_value_of_the_batch(metric_class: Any) -> None:
    metric = metric_class("RR")
    first = torch.tensor([[0.3, 0.1]]), torch.tensor([[0, 1]])
    second = torch.tensor([[0.3, 0.1]]), torch.tensor([[1, 0]])
    rows = torch.tensor([0.3, 0.2, 0.1]), torch.tensor([0, 0, 1]), torch.tensor([4, 4, 4])
    assert metric(*first).item() == 1 / 2
    assert metric(*second).item() == 1
    assert metric(*rows).item() == pytest.approx(1 / 3)
    assert metric.compute().item() == pytest.approx((1 / 2 + 1 + 1 / 3) / 3)
    metric.reset()
    metric.update(*second)
    assert metric.compute().item() == 1


def test_copies_and_pickles_go_on_alone(metric_class: Any) -> None:
    metric = metric_class("RR")
    batch = torch.tensor([[0.3, 0.1]]), torch.tensor([[0, 1]])
    metric.update(*batch)
    made = [copy.deepcopy(metric)]
    if metric_class is ours.RankingMetric:
        made.append(pickle.loads(pickle.dumps(metric)))  # noqa: S301  (our own, as data loaders and launchers send it)
    for other in made:
        other.update(torch.tensor([[0.3, 0.1]]), torch.tensor([[1, 0]]))
        assert other.compute().item() == 3 / 4
    assert metric.compute().item() == 1 / 2


def test_casting_the_module_leaves_the_sums_exact(metric_class: Any) -> None:
    module = torch.nn.ModuleDict({"metric": metric_class(METRICS)})
    module["metric"].update(torch.from_numpy(SCORES), torch.from_numpy(LABELS), torch.from_numpy(IDS))
    module.half().to("cpu")
    module["metric"].update(torch.tensor([[0.3, 0.1]]), torch.tensor([[0, 1]]))
    again = fr.Evaluator(METRICS)
    again.update(LABELS, SCORES, OFFSETS)
    again.update([[0, 1]], [[0.3, 0.1]])
    assert items(module["metric"].compute()) == again.result().aggregate()


def test_inference_mode_and_training_mix(metric_class: Any) -> None:
    metric = metric_class("RR")
    with torch.inference_mode():
        metric.update(torch.tensor([[0.3, 0.1]]), torch.tensor([[0, 1]]))
    metric.update(torch.tensor([[0.3, 0.1]]), torch.tensor([[1, 0]]))
    assert metric.compute().item() == 3 / 4


def test_a_collection_never_takes_two_metrics_for_one() -> None:
    torchmetrics = pytest.importorskip("torchmetrics", reason="torchmetrics is not installed")
    collection = torchmetrics.MetricCollection(
        {"rr": ours.RankingMetric("RR"), "ndcg": ours.RankingMetric(["nDCG@5", "AP"]), "theirs": torchmetrics.retrieval.RetrievalMRR()}
    )
    # Of the first batch both are 1: a collection that looks at values alone would go on with one of them.
    for scores, labels in (([0.9, 0.1], [1, 0]), ([0.2, 0.8, 0.1], [1, 0, 1])):
        collection.update(torch.tensor(scores), torch.tensor(labels), indexes=torch.full((len(labels),), len(labels)))
    found = items(collection.compute())
    assert found["rr"] == 3 / 4 == found["theirs"]
    assert found["AP"] == (1 + (1 / 2 + 2 / 3) / 2) / 2
    assert found["nDCG@5"] == pytest.approx((1 + (1 / np.log2(3) + 1 / 2) / (1 + 1 / np.log2(3))) / 2)


# --- processes, threads, loaders ---------------------------------------------------------------------------------------------------


def run_program(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a file beside this one in a process of its own."""
    program = Path(__file__).with_name(name)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(program.parent.parent), str(program.parent)])}
    return subprocess.run([sys.executable, str(program), *arguments], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_available(), reason="this torch has no torch.distributed")
def test_every_process_sees_the_value_of_all_rows(tmp_path: Path) -> None:
    kinds = ["torchmetrics", "plain"] if importlib.util.find_spec("torchmetrics") else ["plain"]
    done = run_program("torch_processes.py", str(tmp_path), *kinds)
    assert done.returncode == 0, done.stderr
    both = fr.Evaluator(METRICS)
    both.update(LABELS, SCORES, OFFSETS)
    for _ in range(2):  # each of two processes adds this query
        both.update([[0, 1]], [[0.5, 0.1]])
    alone = fr.evaluate([[0, 1], [0, 1]], [[0.5, 0.1]] * 2, metrics=METRICS).aggregate()
    for place in (0, 1):
        found = json.loads((tmp_path / f"{place}.json").read_text())
        assert found == {f"{kind} {way}": [expected(), both.result().aggregate(), alone] for kind in kinds for way in WAYS}


def test_threads_and_forked_workers_of_a_loader_at_once() -> None:
    done = run_program("torch_loader.py")
    assert done.returncode == 0, done.stderr


# --- mistakes --------------------------------------------------------------------------------------------------------------------


PAIR = torch.tensor([0.1, 0.2]), torch.tensor([0, 1])
ROWS = torch.tensor([[0.1, 0.2]]), torch.tensor([[0, 1]])


@pytest.mark.parametrize(
    ("data", "named", "message"),
    [
        (PAIR, {"indexes": torch.tensor([0, 0]), "offsets": torch.tensor([0, 2])}, "give one of indexes and offsets, not both"),
        (PAIR, {"indexes": torch.tensor([0])}, r"must have one shape, not \(2,\), \(2,\) and \(1,\)"),
        (PAIR, {"indexes": torch.tensor([0.0, 1.0])}, "indexes must be whole numbers"),
        ((torch.tensor([1, 2]), PAIR[1]), {"indexes": torch.tensor([0, 0])}, "preds must be floats where indexes are given, not int64"),
        ((torch.tensor([1.0, float("nan")]), PAIR[1]), {"indexes": torch.tensor([0, 0])}, r"preds\[1\] is NaN"),
        (PAIR, {"mask": torch.tensor([True, True])}, r"two-dimensional .* the shapes are \(2,\), \(2,\) and \(2,\)"),
        (ROWS, {"mask": torch.tensor([[True, True]]), "offsets": torch.tensor([0, 2])}, "leave out indexes and offsets"),
        ((ROWS[0], PAIR[1]), {}, "scores must have the shape of labels"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_added(metric_class: Any, data: Any, named: Any, message: str) -> None:
    metric = metric_class("RR")
    metric.update(*ROWS)
    with pytest.raises(fr.InputError, match=message):
        metric.update(*data, **named)
    assert metric.compute().item() == 1


def test_without_torch_one_sentence_says_how_to_get_it() -> None:
    program = "import sys; sys.modules['torch'] = None; import fastrank.training.torch"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    wanted = "ImportError: fastrank.training.torch needs torch, which is not installed: pip install 'fastrank-metrics[torch]'."
    assert done.stderr.splitlines()[-1] == wanted
