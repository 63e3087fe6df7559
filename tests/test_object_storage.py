"""Files in object storage, by a local S3 server: the same bits as from a disk, and no more read than needed."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

import fastrank as fr

server = pytest.importorskip("moto.server", reason="needs moto: pip install 'moto[server]'")

METRICS = "nDCG@10,RR"
LOCALES = ("de", "fr")


def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(200), 5)
    names = pa.array([f"q{seed}-{q:03d}" for q in query])
    return pa.table({"query_id": names, "label": rng.integers(0, 3, 1000), "score": rng.random(1000), "day": query // 50})


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """The address of a bucket with a hive-partitioned data set, the options of its server, and the same files on disk."""
    keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "127.0.0.1"}
    before = {name: os.environ.get(name) for name in keys}
    os.environ.update(keys)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    options = f"?endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    system, _ = fs.FileSystem.from_uri(f"s3://data{options}")
    system.create_dir("data")
    local = tmp_path_factory.mktemp("local")
    for number, locale in enumerate(LOCALES):
        (local / f"locale={locale}").mkdir()
        pq.write_table(rows(number), local / f"locale={locale}" / "part 0.parquet", row_group_size=250)
    fs.copy_files(str(local), "data/runs", source_filesystem=fs.LocalFileSystem(), destination_filesystem=system)
    yield "s3://data/runs", options, local
    running.stop()
    for name, value in before.items():
        if value is None:
            os.environ.pop(name)
        else:
            os.environ[name] = value


def bits(result: Any) -> tuple[Any, ...]:
    return result.query_ids.to_pylist(), result.values.tobytes(), result.moments, result.slice_moments, result.notes


@pytest.mark.parametrize("path", ["", "/**/*.parquet", "/locale=fr/part 0.parquet"])
def test_paths_patterns_and_folders_give_the_bits_of_the_disk(bucket: tuple[str, str, Path], path: str) -> None:
    address, options, local = bucket
    path = path.replace(" ", "%20") if path.endswith("part 0.parquet") else path
    found = fr.evaluate_table(f"{address}{path}{options}", METRICS, by="locale")
    assert bits(found) == bits(fr.evaluate_table(f"{local}{path.replace('%20', ' ')}", METRICS, by="locale"))


def test_filters_skip_files_and_row_groups(bucket: tuple[str, str, Path]) -> None:
    address, options, local = bucket
    for wanted in (pc.field("locale") == "fr", pc.field("day") == 2, (pc.field("locale") == "de") & (pc.field("day") > 2)):
        found = fr.evaluate_table(address + options, METRICS, filter=wanted)
        assert bits(found) == bits(fr.evaluate_table(str(local), METRICS, filter=wanted))
        assert 0 < found.n_queries < 400


def test_what_is_not_asked_for_is_not_read(bucket: tuple[str, str, Path], tmp_path: Path) -> None:
    _, options, _ = bucket
    table = rows(7).append_column("other", pa.array(np.arange(1000.0)))
    pq.write_table(table, tmp_path / "whole.parquet", row_group_size=250)
    content = bytearray((tmp_path / "whole.parquet").read_bytes())
    metadata = pq.read_metadata(tmp_path / "whole.parquet")
    for group in range(4):  # each is a day
        for place in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(place)
            if group != 2 or chunk.path_in_schema == "other":
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                content[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    system, _ = fs.FileSystem.from_uri(f"s3://data{options}")
    with system.open_output_stream("data/damaged.parquet") as file:
        file.write(bytes(content))
    found = fr.evaluate_table(f"s3://data/damaged.parquet{options}", METRICS, filter=pc.field("day") == 2)
    assert bits(found) == bits(fr.evaluate_table(tmp_path / "whole.parquet", METRICS, filter=pc.field("day") == 2))
    assert found.n_queries == 50
    with pytest.raises(fr.InputError, match=r"damaged\.parquet"):
        fr.evaluate_table(f"s3://data/damaged.parquet{options}", METRICS)


def test_checkpoints_notice_a_changed_object(bucket: tuple[str, str, Path], tmp_path: Path) -> None:
    address, options, _ = bucket
    whole = fr.evaluate_table(address + options, METRICS, checkpoint=tmp_path / "kept")
    assert bits(fr.evaluate_table(address + options, METRICS, checkpoint=tmp_path / "kept")) == bits(whole)
    system, _ = fs.FileSystem.from_uri(f"s3://data{options}")
    with system.open_output_stream("data/runs/locale=fr/part 0.parquet") as file:
        pq.write_table(rows(1).slice(0, 500), file)
    with pytest.raises(fr.InputError, match=r"locale=fr/part 0\.parquet.* has changed since the checkpoint"):
        fr.evaluate_table(address + options, METRICS, checkpoint=tmp_path / "kept")


def test_what_is_not_there_is_one_line(bucket: tuple[str, str, Path]) -> None:
    address, options, _ = bucket
    for path in ("/nothing.parquet", "/*.nothing"):
        with pytest.raises(fr.InputError) as caught:
            fr.evaluate_table(address + path + options, METRICS)
        assert "nothing" in str(caught.value)
        assert "\n" not in str(caught.value)
