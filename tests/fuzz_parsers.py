"""Any bytes into every parser: what comes out is a value or an `InputError` of one line, and never anything else.

Each target checks what holds for any input as well. `tests/test_fuzz.py` draws a few inputs from a seed; for as long as one likes, with the
kernels' bounds checked, and guided by coverage where atheris is installed:

    NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/checked python tests/fuzz_parsers.py --seconds 60 [TARGET ...]
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

if "--coverage" in sys.argv:
    # Of what is imported here atheris sees which branches an input takes. It must not touch kernels, which Numba would no longer know.
    import atheris

    _PACKAGE = Path(__file__).parent.parent / "fastrank"
    _MODULES = {
        ".".join(path.relative_to(_PACKAGE.parent).with_suffix("").parts): "_kernel" in path.read_text() for path in _PACKAGE.rglob("*.py")
    }
    with atheris.instrument_imports(include=["fastrank"], exclude=[name for name, has_kernels in _MODULES.items() if has_kernels]):
        for _name in ("engine.ids", "engine.runs", "engine.tables", "io.grouped", "io.letor", "metrics.grammar"):
            importlib.import_module(f"fastrank.{_name}")

import fastrank as fr

# So many seconds of the processor for so few bytes are a hang; the first call of a kernel compiles it.
LONGEST = 4096
PATIENCE = 30


# --- targets ---------------------------------------------------------------------------------------------------------------------


def in_one_line(call: Callable[[], Any]) -> Any:
    """The value of a call, or None after an error that is one line."""
    try:
        return call()
    except fr.InputError as error:
        message = str(error)
        assert message, "an error without a word"
        assert "\n" not in message, f"a message of several lines: {message!r}"
        return None


def check_pairs(pairs: Any) -> None:
    """Every row has a query, a document between white space, and a number."""
    if pairs is None:
        return
    bounds, ids = pairs.offsets, pairs.doc_ids
    assert bounds[0] == 0
    assert bounds[-1] == pairs.n_documents == len(ids.start) == len(pairs.code)
    assert (np.diff(bounds) > 0).all()
    assert (ids.start <= ids.stop).all()
    assert (ids.stop <= len(ids.text)).all()
    assert len(set(pairs.query_ids.to_pylist())) == len(pairs)
    assert not np.isnan(pairs.values).any()
    for row in range(min(pairs.n_documents, 50)):
        assert len(ids.text[ids.start[row] : ids.stop[row]].tobytes().split()) == 1
        assert pairs.place(row).startswith("line ")


def check_values(result: Any) -> None:
    """No metric asked for here is infinite, and none but nDCG of labels below 0 is outside of 0 to 1."""
    if result is not None:
        assert np.isfinite(result.values).all()
        assert ((result.values >= 0) & (result.values <= 1)).all()


def qrels(data: bytes) -> None:
    check_pairs(in_one_line(lambda: fr.Qrels.read(data, threads=1)))


def run(data: bytes) -> None:
    check_pairs(in_one_line(lambda: fr.Run.read(data, threads=1)))


def grouped_qrels(data: bytes) -> None:
    in_one_line(lambda: fr.GroupedQrels.read(data))


def qrels_and_run(data: bytes) -> None:
    """The judgements, a line "%%", and the run."""
    judged, _, ranked = data.partition(b"%%\n")
    for options in ({}, {"judged_only": True, "missing": "skip", "duplicates": "max", "convention": "trec_eval9"}):
        check_values(
            in_one_line(lambda given=options: fr.evaluate_run(judged, ranked, "ndcg_cut_5,map,recip_rank,bpref,P_5", threads=1, **given))
        )


def letor(data: bytes) -> None:
    """The rows, then lines "%%", with scores and sizes of groups behind them."""
    parts = data.split(b"%%\n")[:3]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("rows", "scores", "groups")][: len(parts)]
        for path, part in zip(paths, parts, strict=True):
            path.write_bytes(part)
        columns = in_one_line(lambda: fr.read_letor(*paths))
    if columns is not None:
        assert columns.offsets[0] == 0
        assert columns.offsets[-1] == len(columns.labels)
        assert (np.diff(columns.offsets) >= 0).all()
        assert len(columns.query_ids) == len(columns.offsets) - 1


def table(data: bytes) -> None:
    """JSON lines, CSV, TSV, or anything else that the first bytes say."""
    check_values(in_one_line(lambda: fr.evaluate_table(io.BytesIO(data), "nDCG@5,RR,AP", no_relevant="zero", threads=1)))


def id_lists(data: bytes) -> None:
    """JSON: what was retrieved and what is relevant, in any form."""
    try:
        given = json.loads(data)
    except ValueError:
        return
    if isinstance(given, list) and len(given) == 2:
        check_values(in_one_line(lambda: fr.evaluate_ids(given[0], given[1], "R,RR,AP", k=3, threads=1)))


def metric_names(data: bytes) -> None:
    """Every name that is read is printed so that it is read again, short and full, under every convention."""
    text = data.decode("utf-8", "replace")
    found = in_one_line(lambda: fr.parse_metrics(text))
    for metric in found or ():
        assert fr.parse_metric(str(metric)) == metric
        filled = fr.parse_metric(metric, "trec_eval")
        assert fr.parse_metric(str(filled), "lightgbm") == filled


SEEDS: dict[Callable[[bytes], None], list[bytes]] = {
    qrels: [b"q1 0 d1 1\nq1 0 d2 0\nq2 0 d1 2\n", b"\xef\xbb\xbf# head\nq1\t0\td#1\t-1\r\n\nq2 0 \xc2\xa0 +3.0"],
    run: [b"q1 Q0 d1 1 0.5 me\nq1 Q0 d2 2 1e-400 me\nq2 Q0 d1 1 0x1p3 me", b"q1 Q0 d 1 +.5 t extra\nq2 Q0 d 1 inf t\nq1 Q0 e 1 nan t\n"],
    grouped_qrels: [b"q1 1 a 1\nq1 2 b 1\n", b"q1 ann 1 a 2\nq1 ann 1 b 1\nq1 ann 2 b 5\n"],
    qrels_and_run: [b"q1 0 a 1\nq1 0 b -1\nq2 0 c 0\n%%\nq1 Q0 b 1 1.00000001 t\nq1 Q0 a 2 1 t\nq3 Q0 c 1 1 t\n"],
    letor: [b"2 qid:1 1:0.5 # doc\n0 qid:1 1:0.1\n1 qid:2\n%%\n0.5\n-1e-3\n+.25\n", b"1 1:0.5\n0 2:1\n%%\n1\n2\n%%\n1\n0\n1\n"],
    table: [
        b"query_id,label,score\na,1,0.5\na,0,+.5\nb,,1e-400\n",
        b'{"query_id": "a", "label": 1, "score": 0.5}\n{"query_id": "a", "label": null, "score": 2}\n',
        b"query_id\tlabel\tscore\n007\t2\tinf\n",
    ],
    id_lists: [b'[{"u": ["a", "b"]}, {"u": {"b": 2}}]', b"[[[4, 1, 7], [5, -1, -1]], [[1, 4], [2, 5]]]"],
    metric_names: [
        b"nDCG@10,RR",
        b"ndcg_cut_5,10",
        b"nDCG(gains={1:3, 2:7})@20%",
        b"iprec_at_recall.0.1",
        b"map@10-l2",
        b"set_F_0.5",
        b"rbp.95",
    ],
}
TARGETS = {target.__name__: target for target in SEEDS}

TOKENS = [
    *(
        b" ",
        b"\t",
        b"\n",
        b"\r\n",
        b"\x00",
        b"\x0b",
        b"#",
        b"%%\n",
        b",",
        b'"',
        b"'",
        b"{",
        b"}",
        b"[",
        b"]",
        b"(",
        b")",
        b":",
        b"@",
        b"=",
        b"%",
    ),
    *(b"\xef\xbb\xbf", b"\xc2\xa0", b"\xff\xfe", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\x1f\x8b", b"PAR1", b"ARROW1", b"BZh9", b"ORC"),
    *(
        b"1e-400",
        b"1e400",
        b"+.5",
        b"0x1p3",
        b"-0",
        b"nan",
        b"inf",
        b"-inf",
        b"9223372036854775808",
        b"1_0",
        b"NA",
        b"null",
        b"None",
        b"true",
    ),
    *(
        b"qid:",
        b"q1 0 d 1\n",
        b"q1 Q0 d 1 1 t\n",
        b"query_id",
        b"label",
        b"score",
        b"nDCG",
        b"rel=",
        b"gain=",
        b"-l2",
        b"20%",
        b"9" * 400,
        b"d" * 300,
    ),
]


def mutated(seed: bytes, rng: random.Random) -> bytes:
    """A seed after a few cuts, copies, tokens and flipped bits."""
    data = bytearray(seed)
    for _ in range(rng.randint(1, 8)):
        place, other = (rng.randint(0, len(data)) for _ in range(2))
        first, last = min(place, other), max(place, other)
        kind = rng.randrange(5)
        if kind == 0:
            del data[first : min(last, first + 20)]
        elif kind == 1:
            data[place:place] = rng.choice(TOKENS)
        elif kind == 2:
            data[place:place] = data[first:last]
        elif kind == 3 and data:
            data[place % len(data)] ^= 1 << rng.randrange(8)
        else:
            data[place:place] = rng.randbytes(rng.randint(1, 4))
    return bytes(data[:LONGEST])


# --- for a long time -------------------------------------------------------------------------------------------------------------


def fuzz_at_random(target: Callable[[bytes], None], seconds: float, seed: int) -> int:
    """Mutations of the seeds, and of mutations, until the time is over. Returns how many inputs were tried."""
    rng, n, end = random.Random(seed), 0, time.monotonic() + seconds
    pool = list(SEEDS[target])
    while time.monotonic() < end:
        data = mutated(rng.choice(pool), rng)
        began = time.process_time()
        try:
            target(data)
        except BaseException:
            sys.stderr.write(f"{target.__name__}: {data!r}\n")
            raise
        assert time.process_time() - began < PATIENCE, f"{target.__name__} took {time.process_time() - began:.0f} s for {data!r}"
        pool = [*pool[-200:], data] if rng.random() < 0.05 else pool
        n += 1
    return n


def fuzz_by_coverage(target: Callable[[bytes], None], seconds: float) -> None:
    """What atheris finds by the lines and branches that an input reaches. Ends the process."""
    with tempfile.TemporaryDirectory() as folder:
        for place, seed in enumerate(SEEDS[target]):
            Path(folder, str(place)).write_bytes(seed)
        dictionary = Path(folder, "tokens.dict")
        dictionary.write_text("".join('"' + "".join(f"\\x{byte:02x}" for byte in token) + '"\n' for token in TOKENS if len(token) < 60))
        flags = [
            f"-max_total_time={seconds:.0f}",
            f"-max_len={LONGEST}",
            f"-timeout={10 * PATIENCE}",
            f"-dict={dictionary}",
            "-rss_limit_mb=4096",
        ]
        atheris.Setup([sys.argv[0], *flags, folder], target)
        atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description="Any bytes into every parser.")
    parser.add_argument("targets", nargs="*", default=list(TARGETS), help="which parsers; default: all, one after the other")
    parser.add_argument("--seconds", type=float, default=60, help="for each")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations")
    parser.add_argument("--coverage", action="store_true", help="one target in this process, by atheris")
    given = parser.parse_args()
    for name in given.targets:
        if given.coverage:
            fuzz_by_coverage(TARGETS[name], given.seconds)
        # Half of the time each: atheris cannot see into kernels, where blind mutations do as well.
        guided = importlib.util.find_spec("atheris") is not None
        n = fuzz_at_random(TARGETS[name], given.seconds / (2 if guided else 1), given.seed)
        sys.stdout.write(f"{name}: {n:,} mutations\n")
        sys.stdout.flush()
        if guided:
            command = [sys.executable, __file__, "--coverage", "--seconds", str(given.seconds / 2), name]
            subprocess.run(command, check=True, env=os.environ)


if __name__ == "__main__":
    main()
