"""Is it a table or a TREC file? Told without opening either: most runs are TREC files, and what reads tables takes long to import."""

from __future__ import annotations

import codecs
import json
import os
import re
from typing import Any

from fastrank.errors import InputError
from fastrank.io.text import read_start

# Names of the columns that hold ids.
QUERY, DOC = "query_id", "doc_id"
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
WILD = re.compile(r"[*?\[]")

# How much of a file is looked at.
HEAD = 1 << 16
# The first bytes of tables that are no text: Parquet, Arrow IPC (a file or a stream), ORC, and the first version of Feather.
MAGIC = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"ORC", b"FEA1")
# A file of such a name is a table even where it does not begin as one: then it is damaged, and its reader says so.
NAMES = re.compile(r"\.(parquet|orc|arrows?|feather|ipc|json|jsonl|ndjson|csv)(\.(gz|gzip|zst|zstd|lz4|bz2))?$", re.IGNORECASE)
DELIMITERS = (",", "\t", ";", "|")


def is_table(source: Any) -> bool:
    """Whether this is data in columns, or names several files, or one that says so.

    A file says so by its first bytes (Parquet, Arrow IPC, ORC, a JSON object), by its first line (the names of both ids), or by its own
    name, unless it may be anything, as a .tsv file.
    """
    if isinstance(source, str | os.PathLike):
        path = os.fsdecode(source)
        if os.path.isfile(path):
            return NAMES.search(path) is not None or _begins_like_one(path)
        return bool(URI.match(path)) or os.path.isdir(path) or (WILD.search(path) is not None and not os.path.lexists(path))
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(item, str | os.PathLike) for item in source)
    is_arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    return is_arrow or type(source).__module__ == "pyarrow._dataset"


def _begins_like_one(path: str) -> bool:
    try:
        head = read_start(path, HEAD)
    except InputError:
        return False  # who reads the file will say what is wrong with it
    if head.startswith(MAGIC):
        return True
    first = head.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0].decode("utf-8", "replace").strip()
    return _is_json_object(first) or any({QUERY, DOC} <= {name.strip('"') for name in first.split(by)} for by in DELIMITERS)


def _is_json_object(line: str) -> bool:
    try:
        return line.startswith("{") and isinstance(json.loads(line), dict)
    except ValueError:
        return False
