"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from fastrank.errors import InputError

Path = str | os.PathLike[str]
Writer = Callable[[BinaryIO], object]


def write_file(path: Path, write: Writer) -> None:
    """Let ``write`` fill a file that then takes the place of ``path`` at once, or leaves it as it was: see `write_files`."""
    write_files({path: write})


def write_text(path: Path, text: str) -> None:
    """Write a whole text, UTF-8 with line feeds as they are: see `write_files`."""
    write_files({path: lambda file: file.write(text.encode())})


def write_files(writers: Mapping[Path, Writer]) -> None:
    """Write several files, each by its function, of which either all are replaced or, short of a crash between two renames, none.

    Each is written under another name in its folder, forced to the disk and renamed when all are complete. What goes wrong before
    that, a full disk or Ctrl-C, leaves what was there and nothing else. A file keeps the permissions of the one it replaces, and a
    symbolic link goes on to point to it. What is no regular file (a pipe, /dev/stdout) is written as it stands.

    Raises
    ------
    InputError
        A file cannot be written; the line names it and says why. A broken pipe is left to the caller as `BrokenPipeError`.
    """
    drafts: list[tuple[Path, str, str]] = []
    try:
        for path, write in writers.items():
            target = check_target(path)
            with _writing(path):
                if os.path.exists(target) and not os.path.isfile(target):
                    with open(target, "wb") as file:
                        write(file)
                else:
                    draft = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
                    drafts.append((path, draft, target))
                    _fill(draft, target, write)
        for path, draft, target in drafts:
            with _writing(path):
                os.replace(draft, target)
    except BaseException:
        for _, draft, _ in drafts:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft)
        raise
    for folder in {os.path.dirname(target) for _, _, target in drafts}:
        _sync_folder(folder)


def check_target(path: Path) -> str:
    """The file that ``path`` means, links followed, if one can be written there: to be asked before long work, not after it.

    Raises `InputError` where its folder is missing or cannot be written to, or where it is a folder itself.
    """
    target = os.path.realpath(os.fsdecode(path))
    folder = os.path.dirname(target)
    shown = os.fsdecode(path)
    if os.path.isdir(target):
        raise InputError(f"{shown} is a directory: give the name of a file to write.")
    if not os.path.isdir(folder):
        raise InputError(f"{shown} cannot be written: there is no directory {folder}. Make it first.")
    if not os.access(target if os.path.exists(target) else folder, os.W_OK):
        raise InputError(f"{shown} cannot be written: permission denied.")
    return target


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else " ".join(str(error).split())
        raise InputError(f"{os.fsdecode(path)} cannot be written: {reason}.") from error


def _fill(draft: str, target: str, write: Writer) -> None:
    # "x": two runs at once must not write into one file.
    with open(draft, "xb") as file:
        if os.path.exists(target):
            os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
        write(file)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: str) -> None:
    """Force the new names to the disk, where the system lets a folder be opened for that."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
