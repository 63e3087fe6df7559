"""What is compiled, where it is kept, and that threads and forks may call it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

import fastrank as fr
from fastrank._kernel import kernel, map_blocks, query_blocks

ROOT = Path(__file__).parent.parent


def run(program: str, root: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(root), **environment}
    return subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=env, cwd=root, capture_output=True, text=True, check=False)


def batch() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    offsets = np.append(0, np.cumsum(generator.integers(0, 60, 300)))
    labels = generator.integers(0, 5, offsets[-1]) * (generator.random(offsets[-1]) < 0.3)
    return labels, generator.integers(0, 40, offsets[-1]).astype(np.float32), offsets


METRICS = "nDCG@10,RR,AP,ERR@5,AUC,Bpref,Concordance,PNormPush,RBP,Rprec"


# How many argument types each kernel may have: labels come in five widths, scores in three; everything else in one.
SIGNATURES = {"list_counted": 5, "walk_in_order": 2, "narrow": 4, "rank_by_count": 3, "place_input": 3, "place_docid": 3}


@pytest.mark.compiled
@pytest.mark.slow
def test_each_kernel_has_the_argument_types_that_are_listed() -> None:
    program = f"""
        import gc, numpy as np, fastrank as fr
        from fastrank._kernel import Kernel
        generator = np.random.default_rng(0)
        listed = {SIGNATURES!r}
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


def copy_without_caches(folder: Path) -> Path:
    """The package in a folder of its own, a file where each cache directory would be made: as good as read-only, for root too."""
    package = folder / "fastrank"
    shutil.copytree(ROOT / "fastrank", package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (package, *package.rglob("*")):
        if path.is_dir():
            (path / "__pycache__").write_text("no directory")
    return folder


@pytest.mark.compiled
@pytest.mark.slow
def test_a_package_in_a_read_only_place_and_without_a_home_runs_uncached(tmp_path: Path) -> None:
    program = """
        import logging
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
        import fastrank as fr
        print(fr.reciprocal_rank([0, 1], [0.1, 0.2]), fr.__file__)
    """
    root = copy_without_caches(tmp_path / "site")
    done = run(program, root, HOME="/dev/null/home", XDG_CACHE_HOME="/dev/null/cache", NUMBA_CACHE_DIR="")
    assert (done.returncode, done.stdout) == (0, f"[1.] {root / 'fastrank' / '__init__.py'}\n"), done.stderr
    assert "fastrank: kernels are compiled anew in this process" in done.stderr


@pytest.mark.compiled
def test_where_numba_finds_no_place_for_its_cache_a_kernel_is_compiled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    numba = pytest.importorskip("numba")
    compiler = numba.njit

    def without_a_place(*arguments: object, cache: bool = False, **options: object) -> object:
        if cache:
            raise RuntimeError("cannot cache function 'double': no locator available for file '<stdin>'")
        return compiler(*arguments, **options)

    def double(values: np.ndarray) -> None:
        values *= 2

    monkeypatch.setattr(numba, "njit", without_a_place)
    values = np.arange(3.0)
    kernel(double)(values)
    assert values.tolist() == [0, 2, 4]


@pytest.mark.compiled
@pytest.mark.slow
def test_a_cache_that_cannot_be_written_any_more_costs_the_entry_and_not_the_call(tmp_path: Path) -> None:
    program = """
        import errno, logging
        logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
        import numba.core.caching as caching
        def full(self, *arguments):
            raise OSError(errno.ENOSPC, "No space left on device")
        caching.IndexDataCacheFile.save = full
        import fastrank as fr
        print(fr.reciprocal_rank([0, 1], [0.1, 0.2]))
    """
    done = run(program, NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "[1.]\n"), done.stderr
    assert "fastrank: the compiled kernel was not cached" in done.stderr


@pytest.mark.compiled
@pytest.mark.slow
def test_eight_threads_may_make_the_first_call_together(tmp_path: Path) -> None:
    program = """
        import threading
        import fastrank as fr
        barrier, found = threading.Barrier(8), []
        def work():
            barrier.wait()
            found.append(fr.evaluate([0, 1, 0], [1, 1, 1], metrics="RR,ERR", threads=2).values.tolist())
        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), len(set(map(str, found))))
    """
    done = run(program, NUMBA_CACHE_DIR=str(tmp_path))
    assert done.stdout == "8 1\n", done.stderr


@pytest.mark.compiled
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


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_forked_child_can_make_the_first_call() -> None:
    program = """
        import os
        import fastrank as fr
        child = os.fork()
        if child == 0:
            os._exit(0 if fr.reciprocal_rank([0, 1], [1, 1]).tolist() == [3 / 4] else 1)
        print(os.waitpid(child, 0)[1], fr.precision([1, 0], k=2))
    """
    done = run(program)
    assert done.stdout == "0 [0.5]\n", done.stderr


def test_the_first_exception_of_a_block_reaches_the_caller_and_the_pool_goes_on() -> None:
    done: list[int] = []

    def work(first: int, last: int) -> None:
        if first == 3:
            raise fr.InputError("block 3")
        done.append(first)

    offsets = np.arange(0, 9)
    for threads in (1, 3):
        with pytest.raises(fr.InputError, match="block 3"):
            map_blocks(work, offsets, documents=1, threads=threads)
        done.clear()
        map_blocks(lambda first, last: done.append(first), offsets, documents=1, threads=threads)
        assert sorted(done) == list(range(8))


@pytest.mark.parametrize("documents", [1, 7, 100, 10**6])
@pytest.mark.parametrize("sizes", [[], [0], [0, 0, 0, 0], [5, 0, 0, 200, 3, 3, 3], [1] * 50])
def test_blocks_cover_every_query_once_in_order(sizes: list[int], documents: int) -> None:
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    blocks = list(query_blocks(offsets, documents))
    assert [q for first, last in blocks for q in range(first, last)] == list(range(len(sizes)))
    # No block holds more than asked for, counting each query as one more document, but for a longer query alone.
    assert all(last - first == 1 or offsets[last] - offsets[first] + last - first <= documents for first, last in blocks)


def test_importing_the_package_loads_none_of_its_dependencies() -> None:
    done = run("import sys, fastrank; print(sorted({'numpy', 'numba', 'pyarrow', 'scipy', 'rich', 'click'} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_child_forked_while_another_thread_works_a_property_out_can_read_it() -> None:
    program = """
        import os, signal, threading, time, warnings
        from fastrank._cached import cached_property
        warnings.simplefilter("ignore", DeprecationWarning)
        begun = threading.Event()

        class Slow:
            @cached_property
            def value(self):
                begun.set()
                time.sleep(0.2)
                return 3

        slow = Slow()
        thread = threading.Thread(target=lambda: slow.value)
        thread.start()
        begun.wait()
        child = os.fork()
        if not child:
            signal.alarm(20)
            os._exit(slow.value)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread.join()
    """
    done = run(program)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
@pytest.mark.compiled
@pytest.mark.slow
def test_a_child_forked_while_another_thread_compiles_can_compile(tmp_path: Path) -> None:
    program = """
        import os, signal, threading, warnings
        import fastrank as fr
        warnings.simplefilter("ignore", DeprecationWarning)
        import numba  # so that the thread is compiling, not importing, when the fork comes
        from numba.core import event
        begun = threading.Event()

        class Begun(event.Listener):
            def on_start(self, _event): begun.set()
            def on_end(self, _event): pass

        event.register("numba:compile", Begun())
        thread = threading.Thread(target=lambda: fr.reciprocal_rank([0, 1], [0.1, 0.2]))
        thread.start()
        begun.wait()
        child = os.fork()
        if not child:
            signal.alarm(120)
            os._exit(int(fr.reciprocal_rank([0, 0, 1], [3, 2, 1])[0] * 300))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        thread.join()
    """
    done = run(program, NUMBA_CACHE_DIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr


@pytest.mark.compiled
def test_what_a_kernel_sets_aside_stays_its_own_to_the_end() -> None:
    """Numba frees an array after the last use of its name; memory of this size is then gone at once."""
    n = 8_000_000
    labels = np.zeros(n, np.uint8)
    labels[::1000] = 1
    assert fr.evaluate(labels, labels.astype(np.float32), metrics="nDCG@10", offsets=[0, n]).mean() == {"nDCG@10": 1.0}
