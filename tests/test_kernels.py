"""What is compiled, where it is kept, and that threads and forks may call it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import fastrank as fr

ROOT = Path(__file__).parent.parent


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=env, capture_output=True, text=True, check=False)


def batch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    offsets = np.append(0, np.cumsum(generator.integers(0, 60, 300)))
    labels = generator.integers(0, 5, offsets[-1]) * (generator.random(offsets[-1]) < 0.3)
    return labels, generator.integers(0, 40, offsets[-1]).astype(np.float32), offsets


METRICS = "nDCG@10,RR,AP,ERR@5,AUC,Bpref,Concordance,PNormPush,RBP,Rprec"


# How many argument types each kernel may have: labels come in five widths, scores in two; everything else in one.
SIGNATURES = {"mark_counted": 5, "list_counted": 5, "rank_shared": 2, "rank_input": 2, "rank_docid": 2}
BY_SORTING = {"ordered_keys": 2, "sort_chosen": 2, "place_counted": 2, "read_places": 2}


@pytest.mark.compiled
@pytest.mark.slow
def test_each_kernel_has_the_argument_types_that_are_listed() -> None:
    program = f"""
        import gc, numpy as np, fastrank as fr
        from fastrank._kernel import Kernel
        generator = np.random.default_rng(0)
        listed = {{**{SIGNATURES!r}, **{BY_SORTING!r}}}
        for label in ("u1", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "?"):
            for score in ("f2", "f4", "f8", "i4", "i8", "u8", "?"):
                labels = generator.integers(0, 2, 700).astype(label)
                scores = generator.integers(0, 2, 700).astype(score)
                for readonly in (False, True):
                    labels.flags.writeable = scores.flags.writeable = not readonly
                    for ties in ("average", "worst", "best", "input", "docid"):
                        fr.evaluate(labels, scores, [0, 0, 200, 700], metrics={METRICS!r}, ties=ties, doc_ids=np.arange(700))
                    fr.evaluate(labels[::2], scores[::2], [0, 0, 100, 350], metrics={METRICS!r})
        wrong = []
        for kernel in gc.get_objects():
            if isinstance(kernel, Kernel) and "compiled" in kernel.__dict__ and not kernel.__name__.startswith("_"):
                if len(kernel.signatures) > listed.get(kernel.__name__, 1):
                    wrong.append((kernel.__name__, len(kernel.signatures)))
        print(wrong)
    """
    done = run(program)
    assert done.stdout == "[]\n", done.stdout + done.stderr


@pytest.mark.compiled
@pytest.mark.slow
def test_without_a_home_or_a_writable_cache_everything_still_runs(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where the cache directory should be")
    program = "import fastrank as fr; print(fr.ndcg([1, 0, 2], [3, 2, 1], k=2).round(4))"
    done = run(program, NUMBA_CACHE_DIR=str(blocked / "cache"), HOME="/nonexistent")
    assert (done.returncode, done.stdout) == (0, f"{fr.ndcg([1, 0, 2], [3, 2, 1], k=2).round(4)}\n"), done.stderr


def test_eight_threads_at_once_get_the_same_bits() -> None:
    labels, scores, offsets = batch()
    expected = fr.evaluate(labels, scores, offsets, metrics=METRICS).values.tobytes()
    found: list[bytes] = []

    def work() -> None:
        found.extend(fr.evaluate(labels, scores, offsets, metrics=METRICS, threads=2).values.tobytes() for _ in range(3))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 24


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_forked_child_can_call_after_the_parent_used_the_pool() -> None:
    program = f"""
        import os, warnings
        import numpy as np, fastrank as fr
        import fastrank.engine.run as run
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork while threads live is what is tried here
        run.BLOCK = 64
        generator = np.random.default_rng(5)
        labels, scores, offsets = generator.integers(0, 3, 4000), generator.random(4000), np.arange(0, 4001, 20)
        expected = fr.evaluate(labels, scores, offsets, metrics={METRICS!r}, threads=2).values.tobytes()
        child = os.fork()
        if child == 0:
            same = fr.evaluate(labels, scores, offsets, metrics={METRICS!r}, threads=2).values.tobytes() == expected
            os._exit(0 if same else 1)
        print(os.waitpid(child, 0)[1])
    """
    done = run(program)
    assert done.stdout == "0\n", done.stderr


def test_importing_the_package_loads_none_of_its_dependencies() -> None:
    done = run("import sys, fastrank; print(sorted({'numpy', 'numba', 'pyarrow', 'scipy', 'rich', 'click'} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stderr
