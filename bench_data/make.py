#!/usr/bin/env python3
"""Seeded test data of every shape: labels, scores and offsets, and their Parquet, LETOR and TREC files.

    python bench_data/make.py --list
    python bench_data/make.py fixed100 --out bench_data/out --queries 1000 --seed 7 --formats parquet,trec
    python bench_data/make.py sample --out bench_data        # the committed sample and its manifest

The numbers must not depend on a library's version: all randomness is the raw output of PCG64, whose stream NumPy guarantees (the
methods of ``Generator`` carry no such promise), and what is computed for a document is exact integer and float64 arithmetic.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

BLOCK = 1 << 20  # documents generated, or rows written, at a time
BARREN = -1.0  # in place of a share: no document of this query is relevant
LENGTHS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)  # of lists that differ in nothing else
GRADES = np.array([0.55, 0.82, 0.95])  # a relevant document is labelled 1, 2, 3 or 4 with chances .55, .27, .13 and .05


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a data set looks like. A list length never exceeds ``longest``."""

    about: str
    queries: int
    length: str  # "fixed", "lognormal" or "zipf"
    typical: int  # the length itself, the median length, or the shortest one
    longest: int
    relevant: float  # share of relevant documents in a typical query; most queries have at least one
    barren: float = 0.015  # share of queries with nothing relevant
    spread: float = 2.0  # a query's share of relevant documents is up to 2^spread times the typical one, or as many times less
    step: float = 0.0  # scores are whole multiples of it; 0: as fine as float32
    huge: int = 0  # length of the first query, when it stands out


SHAPES = {
    "fixed20": Shape("short lists of one length", 1_000_000, "fixed", 20, 20, 0.2),
    "fixed100": Shape("middling lists of one length", 200_000, "fixed", 100, 100, 0.1),
    "fixed1000": Shape("long lists of one length", 20_000, "fixed", 1000, 1000, 0.05),
    "lognormal": Shape("lengths as search logs have them: median 60, a long tail", 100_000, "lognormal", 60, 20_000, 0.1),
    "zipf": Shape("most lists very short, a few very long", 500_000, "zipf", 1, 100_000, 0.2),
    "sparse": Shape("one relevant document among a thousand", 20_000, "fixed", 1000, 1000, 0.0),
    "dense": Shape("most documents relevant", 200_000, "fixed", 100, 100, 0.6),
    # What the benchmarks are made of: a tenth of all documents relevant, or five of a thousand.
    **{f"tenth{n}": Shape(f"lists of {n:,}, a tenth relevant", 20_000_000 // n, "fixed", n, n, 0.1, spread=0.0) for n in LENGTHS},
    "five1000": Shape("lists of 1,000, five relevant", 20_000, "fixed", 1000, 1000, 0.005, spread=0.0),
    "ties": Shape("about ten documents to each distinct score of a query", 200_000, "fixed", 100, 100, 0.1, step=0.5),
    "huge": Shape("one query of a million documents; further ones are short", 1, "lognormal", 20, 1000, 0.01, huge=1_000_000),
}
SAMPLE = Shape("the committed sample", 200, "lognormal", 9, 60, 0.2, step=0.01)
SAMPLE_SEED = 20_130_612
# The click log: how many sessions, how likely each position is examined, and how likely a document of each label is then clicked.
SESSIONS = 4000
EXAMINED = np.array([1.0, 0.6, 0.42, 0.32, 0.26, 0.22, 0.19, 0.17])
ATTRACTIVE = np.array([0.06, 0.2, 0.35, 0.5, 0.65])


class Arrays(NamedTuple):
    """Query q's documents stand at ``offsets[q]`` to ``offsets[q + 1]``, in no particular order."""

    labels: np.ndarray  # uint8[n_documents], 0 to 4
    scores: np.ndarray  # float32[n_documents]
    offsets: np.ndarray  # int64[n_queries + 1]


# --- numbers -------------------------------------------------------------------------------------------------------------------


def _stream(seed: int, name: str, part: str) -> np.random.PCG64:
    """One independent stream for each part of each shape, so that no part moves when another draws more."""
    return np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(f"{name}/{part}".encode())]))


def _uniform(stream: np.random.PCG64, n: int) -> np.ndarray:
    """Multiples of 2^-53 in [0, 1)."""
    return (stream.random_raw(n) >> np.uint64(11)) * 2.0**-53


def _normal(stream: np.random.PCG64, n: int) -> np.ndarray:
    """The sum of twelve 16-bit draws, standardised, with one finer draw below them.

    Nearly normal (within 6 standard deviations), and exact: a logarithm or cosine would make the bytes depend on the mathematical library.
    """
    raw = stream.random_raw(4 * n).reshape(n, 4)
    coarse = np.ascontiguousarray(raw[:, :3]).view(np.uint16).sum(axis=1, dtype=np.int64)
    fine = (raw[:, 3] >> np.uint64(11)) * 2.0**-53
    return (coarse - 6 * 65_536 + fine) / 65_536.0


def _lengths(shape: Shape, name: str, queries: int, seed: int) -> np.ndarray:
    stream = _stream(seed, name, "lengths")
    if shape.length == "fixed":
        lengths = np.full(queries, shape.typical, np.int64)
    elif shape.length == "lognormal":
        lengths = np.rint(shape.typical * np.exp(_normal(stream, queries))).astype(np.int64)
    else:  # "zipf": P(length >= x) = typical / x
        lengths = np.floor(shape.typical / (1.0 - _uniform(stream, queries))).astype(np.int64)
    lengths = np.clip(lengths, 1, shape.longest)
    if shape.huge and queries:
        lengths[0] = shape.huge
    return lengths


def _shares(shape: Shape, name: str, queries: int, seed: int) -> np.ndarray:
    """The chance that a document of query q is relevant: about the typical one, or BARREN."""
    spread = np.clip(_normal(_stream(seed, name, "shares"), queries), -shape.spread, shape.spread)
    share = np.minimum(shape.relevant * np.exp2(spread), 0.9)
    order = np.argsort(_stream(seed, name, "barren").random_raw(queries), kind="stable")
    share[order[: round(shape.barren * queries)]] = BARREN
    return share


def generate(name: str, queries: int | None = None, seed: int = 0) -> Arrays:
    """Labels, scores and offsets of a shape named in ``SHAPES`` (or "sample"): the same for the same arguments, everywhere."""
    shape = SAMPLE if name == "sample" else SHAPES[name]
    queries = shape.queries if queries is None else queries
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(_lengths(shape, name, queries, seed))])
    shares = _shares(shape, name, queries, seed)
    sure = _uniform(_stream(seed, name, "sure"), queries)
    label_stream, score_stream = _stream(seed, name, "labels"), _stream(seed, name, "scores")
    labels, scores = np.empty(offsets[-1], np.uint8), np.empty(offsets[-1], np.float32)
    for first, last in _blocks(offsets):
        start, stop = offsets[first], offsets[last]
        lengths = np.diff(offsets[first : last + 1])
        share = np.repeat(shares[first:last], lengths)
        draw = _uniform(label_stream, stop - start)
        relevant = draw < share
        label = np.zeros(stop - start, np.uint8)
        label[relevant] = 1 + np.searchsorted(GRADES, draw[relevant] / share[relevant], side="right")
        begins = offsets[first:last] - start
        bare = (np.maximum.reduceat(label, begins) == 0) & (shares[first:last] != BARREN)
        label[(begins + (sure[first:last] * lengths).astype(np.int64))[bare]] = 1
        score = _normal(score_stream, stop - start) + 0.75 * label
        labels[start:stop] = label
        # + 0.0 makes -0.0 a plain zero, which text files write as "0".
        scores[start:stop] = np.rint(score / shape.step) * shape.step + 0.0 if shape.step else score
    return Arrays(labels, scores, offsets)


def _blocks(offsets: np.ndarray) -> Iterator[tuple[int, int]]:
    """Runs of whole queries of about ``BLOCK`` documents."""
    first, n_queries = 0, len(offsets) - 1
    while first < n_queries:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + BLOCK, side="right")) - 1)
        yield first, last
        first = last


# --- tables and files ----------------------------------------------------------------------------------------------------------


def _text(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


def _query_ids(n_queries: int) -> pa.Array:
    """q001, q002, ...: of one width, so that the order of the text is the order of appearance."""
    return pc.binary_join_element_wise(
        "q", pc.utf8_lpad(pa.array(np.arange(1, n_queries + 1)).cast(pa.string()), len(str(n_queries)), "0"), ""
    )


def tables(arrays: Arrays, seed: int = 0) -> Iterator[pa.Table]:
    """The rows (query_id, doc_id, label, score) in tables of about ``BLOCK`` rows.

    Queries share documents, but no query has one twice.
    """
    lengths = np.diff(arrays.offsets)
    # start + place * (an odd number), modulo a power of two no smaller than the list: a different document at every place
    pool = 1 << max(10, int(lengths.max(initial=1) - 1).bit_length() + 1)
    stream = _stream(seed, "documents", "ids")
    start = stream.random_raw(len(lengths)) % np.uint64(pool)
    stride = stream.random_raw(len(lengths)) % np.uint64(pool) | np.uint64(1)
    ids = _query_ids(len(lengths))
    for first, last in _blocks(arrays.offsets):
        low, high = arrays.offsets[first], arrays.offsets[last]
        query = np.repeat(np.arange(first, last), lengths[first:last])
        place = (np.arange(low, high) - arrays.offsets[query]).astype(np.uint64)
        doc = (start[query] + place * stride[query]) % np.uint64(pool)
        columns = {
            "query_id": ids.take(pa.array(query)),
            "doc_id": _text("d", doc),
            "label": pa.array(arrays.labels[low:high].astype(np.int8)),
            "score": pa.array(arrays.scores[low:high]),
        }
        yield pa.table(columns)


def sample_table(seed: int = SAMPLE_SEED) -> pa.Table:
    """The sample: beside the four columns, how often each query is searched (weight) and whether that is often (segment)."""
    arrays = generate("sample", seed=seed)
    lengths = np.diff(arrays.offsets)
    searches = np.floor(10.0 / np.sqrt(1.0 - _uniform(_stream(seed, "sample", "weights"), len(lengths))))
    table = pa.concat_tables(tables(arrays, seed))
    segment = np.where(searches >= 20, "head", "tail")
    table = table.append_column("segment", pa.array(np.repeat(segment, lengths).tolist()))
    return table.append_column("weight", pa.array(np.repeat(searches, lengths)))


def baseline_table(table: pa.Table, seed: int = SAMPLE_SEED) -> pa.Table:
    """The sample as another system scores it, for comparisons: the same queries and documents, the scores with noise of its own."""
    noisy = table["score"].to_numpy() + 0.6 * _normal(_stream(seed, "sample", "baseline"), table.num_rows)
    scores = np.rint(noisy / SAMPLE.step) * SAMPLE.step + 0.0
    return table.set_column(table.column_names.index("score"), "score", pa.array(scores.astype(np.float32)))


def click_table(table: pa.Table, seed: int = SAMPLE_SEED) -> pa.Table:
    """Sessions of users who saw the top of one of two rankers, the sample's or the baseline's, by the position-based model."""
    offsets = np.append(0, np.cumsum(_lengths_of(table)))
    query_ids, docs, labels = table["query_id"].to_pylist(), table["doc_id"].to_pylist(), table["label"].to_numpy()
    rankers = {"baseline": baseline_table(table, seed)["score"].to_numpy(), "sample": table["score"].to_numpy()}
    draws = _stream(seed, "sample", "sessions").random_raw(2 * SESSIONS).reshape(2, SESSIONS)
    users = _uniform(_stream(seed, "sample", "clicks"), SESSIONS * len(EXAMINED)).reshape(SESSIONS, -1)
    rows: dict[str, list[Any]] = {"query_id": [], "ranker": [], "docs": [], "clicks": []}
    for s in range(SESSIONS):
        q, ranker = int(draws[0, s] % np.uint64(len(offsets) - 1)), list(rankers)[int(draws[1, s] % np.uint64(2))]
        start, stop = offsets[q], offsets[q + 1]
        shown = start + np.argsort(-rankers[ranker][start:stop], kind="stable")[: len(EXAMINED)]
        chance = EXAMINED[: len(shown)] * ATTRACTIVE[labels[shown]]
        rows["query_id"].append(query_ids[start])
        rows["ranker"].append(ranker)
        rows["docs"].append([docs[i] for i in shown])
        rows["clicks"].append((users[s, : len(shown)] < chance).astype(int).tolist())
    # "element" is what Parquet calls the values of a list.
    docs_type, clicks_type = (pa.list_(pa.field("element", of)) for of in (pa.string(), pa.int8()))
    types = {"query_id": pa.string(), "ranker": pa.string(), "docs": docs_type, "clicks": clicks_type}
    return pa.table({name: pa.array(values, types[name]) for name, values in rows.items()})


def _write_lines(path: Path, tables: Iterator[list[Any]]) -> None:
    """Join the columns of each part with blanks and write the lines: one buffer a part, no Python object per row."""
    with path.open("wb") as file:
        for columns in tables:
            lines = pc.binary_join_element_wise(*columns[:-1], pc.binary_join_element_wise(columns[-1], "", "\n"), " ")
            for chunk in lines.chunks if isinstance(lines, pa.ChunkedArray) else [lines]:
                ends = np.frombuffer(chunk.buffers()[1], np.int32)[chunk.offset :][: len(chunk) + 1]
                file.write(memoryview(chunk.buffers()[2])[ends[0] : ends[-1]])


def _strings(column: pa.ChunkedArray) -> pa.Array:
    return column.cast(pa.string()).combine_chunks()


def write_parquet(parts: list[pa.Table], stem: Path) -> list[Path]:
    """STEM.parquet."""
    path = stem.with_suffix(".parquet")
    with pq.ParquetWriter(path, parts[0].schema, compression="zstd") as writer:
        for part in parts:
            writer.write_table(part)
    return [path]


def write_letor(parts: list[pa.Table], stem: Path) -> list[Path]:
    """STEM.letor (label, query, one feature, the document as a comment), STEM.scores and STEM.group (list lengths)."""
    paths = [stem.with_suffix(suffix) for suffix in (".letor", ".scores", ".group")]

    def rows(part: pa.Table) -> list[Any]:
        query, doc = _strings(part["query_id"]), _strings(part["doc_id"])
        # A feature nobody reads: every row of such a file has some.
        feature = pc.binary_join_element_wise("1:", pc.utf8_slice_codeunits(doc, -1), "")
        return [_strings(part["label"]), pc.binary_join_element_wise("qid:", query, ""), feature, pc.binary_join_element_wise("#", doc, "")]

    _write_lines(paths[0], map(rows, parts))
    _write_lines(paths[1], ([_strings(part["score"])] for part in parts))
    _write_lines(paths[2], ([pa.array(_lengths_of(part)).cast(pa.string())] for part in parts))
    return paths


def write_trec(parts: list[pa.Table], stem: Path) -> list[Path]:
    """STEM.qrels and STEM.run."""

    def qrels(part: pa.Table) -> list[Any]:
        return [_strings(part["query_id"]), "0", _strings(part["doc_id"]), _strings(part["label"])]

    path = stem.with_suffix(".qrels")
    _write_lines(path, map(qrels, parts))
    return [path, write_run(parts, stem)]


def write_run(parts: list[pa.Table], stem: Path) -> Path:
    """STEM.run, the documents in rank order (equal scores as they came)."""

    def run(part: pa.Table) -> list[Any]:
        lengths = _lengths_of(part)
        order = np.lexsort((-part["score"].to_numpy(), np.repeat(np.arange(len(lengths)), lengths)))
        rank = np.arange(1, len(order) + 1) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        part = part.take(pa.array(order))
        rank_text = pa.array(rank).cast(pa.string())
        return [_strings(part["query_id"]), "Q0", _strings(part["doc_id"]), rank_text, _strings(part["score"]), "s1"]

    path = stem.with_suffix(".run")
    _write_lines(path, map(run, parts))
    return path


def _lengths_of(part: pa.Table) -> np.ndarray:
    """The list lengths of a table that holds whole queries, each in one piece."""
    codes = part["query_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    return np.bincount(codes) if len(codes) else np.zeros(0, np.int64)


WRITERS = {"parquet": write_parquet, "letor": write_letor, "trec": write_trec}


# --- manifest ------------------------------------------------------------------------------------------------------------------


def content_sha256(table: pa.Table) -> str:
    """A checksum of names, types and values: a Parquet file's bytes depend on the version of the library that wrote it."""
    digest = hashlib.sha256()
    for name, column in zip(table.column_names, table.columns, strict=True):
        digest.update(f"{name}:{column.type}\n".encode())
        if pa.types.is_string(column.type):
            digest.update("\n".join(column.to_pylist()).encode())
        elif pa.types.is_list(column.type):
            digest.update(json.dumps(column.to_pylist()).encode())
        else:
            values = column.to_numpy()
            digest.update(values.astype(values.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()


def write_sample(out: Path, seed: int = SAMPLE_SEED) -> list[Path]:
    """Every form of the sample, a run of another system, a click log, and manifest.json with each file's shape, seed and checksum."""
    table = sample_table(seed)
    sessions = click_table(table, seed)
    paths = [path for write in WRITERS.values() for path in write([table], out / "sample")]
    paths.append(write_run([baseline_table(table, seed)], out / "baseline"))
    paths += write_parquet([sessions], out / "clicks")
    facts = {
        "made_by": "python bench_data/make.py sample --out bench_data",
        "n_queries": len(_lengths_of(table)),
        "n_documents": table.num_rows,
        "longest_list": int(_lengths_of(table).max()),
        "queries_with_nothing_relevant": _nothing_relevant(table),
        "files": {path.name: _describe(path, sessions if path.stem == "clicks" else table, seed) for path in paths},
    }
    manifest = out / "manifest.json"
    manifest.write_text(json.dumps(facts, indent=2) + "\n")
    return [*paths, manifest]


def _describe(path: Path, table: pa.Table, seed: int) -> dict[str, Any]:
    """One file's entry in the manifest."""
    if path.suffix == ".parquet":
        columns = {field.name: str(field.type) for field in table.schema}
        return {"rows": table.num_rows, "columns": columns, "seed": seed, "content_sha256": content_sha256(table)}
    content = path.read_bytes()
    return {"rows": content.count(b"\n"), "seed": seed, "sha256": hashlib.sha256(content).hexdigest()}


def _nothing_relevant(table: pa.Table) -> int:
    best = table.group_by("query_id").aggregate([("label", "max")])
    return int(pc.sum(pc.equal(best["label_max"], 0)).as_py())


def main(arguments: list[str] | None = None) -> None:
    """The command: write one shape, or all of them, and print each file's path and size."""
    parser = argparse.ArgumentParser(description="Write seeded ranking data.")
    parser.add_argument("name", nargs="?", choices=["all", "sample", *SHAPES], metavar="NAME", help="a shape of --list, sample, or all")
    parser.add_argument("--list", action="store_true", help="print the shapes and stop")
    parser.add_argument("--out", type=Path, help="directory for the files; made when missing")
    parser.add_argument("--queries", type=int, help="number of queries, instead of the shape's own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", default="parquet", help="comma list of parquet, letor, trec (the sample has them all)")
    given = parser.parse_args(arguments)
    if given.list:
        for name, shape in SHAPES.items():
            print(f"{name:10} {shape.queries:>9,} queries  {shape.about}")
        return
    formats = given.formats.split(",")
    if given.name is None or given.out is None:
        parser.error("NAME and --out are needed (or --list)")
    if given.queries is not None and given.queries < 1:
        parser.error(f"--queries must be at least 1, not {given.queries}")
    if unknown := set(formats) - set(WRITERS):
        parser.error(f"--formats: {', '.join(sorted(unknown))} is not one of {', '.join(WRITERS)}")
    given.out.mkdir(parents=True, exist_ok=True)
    for name in SHAPES if given.name == "all" else [given.name]:
        if name == "sample":
            paths = write_sample(given.out)
        else:
            parts = list(tables(generate(name, given.queries, given.seed), given.seed))
            paths = [path for form in formats for path in WRITERS[form](parts, given.out / name)]
        for path in paths:
            print(f"{path}  {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
