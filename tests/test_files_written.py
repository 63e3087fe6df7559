"""Files that are written whole or not at all: results, their single queries, and whatever else goes through the same door."""

from __future__ import annotations

import ast
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

import fastrank as fr
from fastrank.convention import conventions
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation
from fastrank.io.atomic import check_target, write_file, write_files, write_text
from fastrank.report import saved
from fastrank.report.per_query import write_per_query


def test_a_file_is_replaced_at_once_and_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    write_text(path, "one\r\nü")
    assert path.read_bytes() == "one\r\nü".encode()
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)

    def look(file: BinaryIO) -> None:
        file.write(b"two")
        file.flush()
        assert path.read_text("utf-8").startswith("one")

    write_file(path, look)
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_goes_on_to_point_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "out.txt")
    write_text(tmp_path / "link", "x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "deep" / "out.txt").read_text() == "x"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "full"), ValueError("a bug"), BrokenPipeError(), SystemExit(1)])
def test_what_goes_wrong_leaves_what_was_there(error: BaseException, tmp_path: Path) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    old.write_text("old")

    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise error

    expected = InputError if type(error) is OSError else type(error)
    with pytest.raises(expected):
        write_files({old: lambda file: file.write(b"complete"), new: fail})
    assert old.read_text() == "old"
    assert list(tmp_path.iterdir()) == [old]


def test_a_kill_while_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old")
    program = """
import os, signal, sys
from fastrank.io.atomic import write_file

def half(file):
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

write_file(sys.argv[1], half)
"""
    done = subprocess.run([sys.executable, "-c", program, path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def opened_for_writing(tree: ast.AST) -> Iterator[int]:
    """Lines of calls that open a file to write it, or write one by its path."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [each.value for each in (*node.args, *(word.value for word in node.keywords)) if isinstance(each, ast.Constant)]
        if name == "open" and any(re.fullmatch("[rbt]*[wax+][rbt+]*", str(mode)) for mode in modes):
            yield node.lineno
        if name in ("write_text", "write_bytes", "to_csv", "to_parquet") and isinstance(node.func, ast.Attribute):
            yield node.lineno


def test_every_file_goes_through_the_one_door() -> None:
    package = Path(fr.__file__).parent
    # The door itself; and what goes into a temporary folder, for another program to read.
    allowed = {"io/atomic.py", "verification/peers.py"}
    found = [
        f"{path.relative_to(package)}:{line}"
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).as_posix() not in allowed
        for line in opened_for_writing(ast.parse(path.read_text()))
    ]
    assert found == []
    seen = "open(p, 'w'); gzip.open(p, mode='wt'); p.open('xb'); p.write_text('x'); open(p); open(p, 'rb'); write_text(p, 'x')"
    assert len(list(opened_for_writing(ast.parse(seen)))) == 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is a directory: give the name of a file to write"),
        ("none/out.txt", "cannot be written: there is no directory .*none. Make it first"),
        ("file/out.txt", "cannot be written: there is no directory"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_a_place_where_nothing_can_be_written_is_one_line(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=message):
        write_text(tmp_path / name, "x")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_folder_that_must_not_be_written_to_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A folder's permissions do not hold root back.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(InputError, match=r"out\.txt cannot be written: permission denied"):
        check_target(tmp_path / "out.txt")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
def test_a_pipe_is_written_as_it_stands(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe.csv").read_bytes()))
    reader.start()
    write_per_query({"": fr.evaluate([[1, 0], [0, 1]], metrics="RR")}, tmp_path / "pipe.csv")
    reader.join()
    assert read[0].count(b"\n") == 2 + 1
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.csv"]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for 64 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no file system can be mounted here: {error}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".jsonl"])
def test_a_full_disk_leaves_what_was_there(suffix: str, full_disk: Path) -> None:
    path = full_disk / f"out{suffix}"
    path.write_text("old")
    rng = np.random.default_rng(0)
    metrics = fr.evaluate([1], metrics="RR,AP").metrics
    large = Evaluation(metrics, conventions["fastrank"], values=rng.random((20_000, 2)), n_queries=20_000, no_relevant=(0, 0))
    with pytest.raises(InputError, match=rf"^{path} cannot be written: No space left on device\.$"):
        write_per_query({"": large}, path)
    assert path.read_text() == "old"
    assert list(full_disk.iterdir()) == [path]
    with pytest.raises(InputError, match="No space left on device"):
        large.save(full_disk / "r.parquet")
    assert list(full_disk.iterdir()) == [path]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_device_that_is_always_full_is_one_line() -> None:
    with pytest.raises(InputError, match=r"^/dev/full cannot be written: No space left on device\.$"):
        write_text("/dev/full", "x")
    with pytest.raises(InputError, match="No space left on device"):
        write_file("/dev/full", saved.parquet_writer(fr.evaluate([[1, 0], [0, 1]])))


def test_two_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from fastrank.io.atomic import write_file\n"
        "for i in range(50):\n"
        "    write_file(sys.argv[1], lambda file: [file.write(sys.argv[2].encode()) for _ in range(1000)])\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "out"), letter]) for letter in "ab"]
    assert [each.wait() for each in running] == [0, 0]
    assert (tmp_path / "out").read_text() in ("a" * 1000, "b" * 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
