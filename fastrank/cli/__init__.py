"""The command `fastrank`. Commands parse their flags and call the library; what can go wrong ends here, in one line.

Only click is imported before a command runs: help and completion answer at once.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import click

from fastrank.cli.click_models import fit, simulate
from fastrank.cli.clicking import clicks
from fastrank.cli.comparing import compare
from fastrank.cli.evaluating import evaluate
from fastrank.cli.explaining import explain
from fastrank.cli.listing import conventions, metrics
from fastrank.cli.options import in_flags
from fastrank.cli.trec_evaluating import trec_eval
from fastrank.cli.verifying import verify
from fastrank.cli.warming import warmup
from fastrank.errors import InputError, one_line

BAD_INPUT = 2
INTERRUPTED = 128 + 2
BROKEN_PIPE = 128 + 13


class _Stop(Exception):  # noqa: N818 - the end of a run, whatever its reason
    """End the process with a code, and a line on stderr where there is something to say."""

    def __init__(self, code: int, message: str = "") -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def _endings() -> Iterator[None]:
    """Ctrl-C and a reader that went away."""
    try:
        yield
    except KeyboardInterrupt:
        raise _Stop(INTERRUPTED, "interrupted.") from None
    except BrokenPipeError:
        raise _Stop(BROKEN_PIPE) from None


class _Commands(click.Group):
    """The group of all commands. What a command raises is turned into its ending here, before click words it in its own way."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """Read the command line; --help and --version print from here."""
        with _endings():
            return super().make_context(*arguments, **options)

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        with _endings():
            try:
                return super().invoke(context)
            except InputError as error:
                message = in_flags(str(error), self.commands.get(context.invoked_subcommand or ""))
                raise _Stop(BAD_INPUT, message) from error

    def list_commands(self, _context: click.Context) -> list[str]:
        """As they were added: the main one first, and not by the alphabet."""
        return list(self.commands)


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="""\b
Examples:
  fastrank evaluate predictions.parquet -m nDCG@10,RR,AP@100
  fastrank explain nDCG@5 --labels 3,2,0,1,2
  fastrank metrics nDCG

\b
Completion of commands, flags, metrics and conventions; in ~/.bashrc, ~/.zshrc or ~/.config/fish/config.fish:
  eval "$(_FASTRANK_COMPLETE=bash_source fastrank)"
  eval "$(_FASTRANK_COMPLETE=zsh_source fastrank)"
  _FASTRANK_COMPLETE=fish_source fastrank | source""",
)
@click.version_option(sys.modules["fastrank"].__version__, message="fastrank %(version)s")
@click.pass_context
def commands(context: click.Context) -> None:
    """Ranking metrics, exact and compiled: nDCG, AP, RR and their kin for files and lists.

    Exit codes: 0 success, 2 usage or bad input (one line on stderr), 1 a bug, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for each in (evaluate, trec_eval, compare, explain, clicks, metrics, conventions, verify, warmup):
    commands.add_command(each)
for each in (fit, simulate):
    clicks.add_command(each)


def main() -> NoReturn:
    """Run the command line and end the process."""
    if sys.argv[1:2] != ["verify"]:  # which asks libraries that need more
        sys.meta_path.insert(0, _Needless)
    _write_in_any_encoding()
    _wake_on_interrupt()
    code, message = run(sys.argv[1:])
    if message:
        click.echo(f"fastrank: {message}", err=True)
    if code:
        # What is still in the buffer could not be written: do not try again on the way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)


def run(arguments: Sequence[str]) -> tuple[int, str]:
    """Run one command. Returns the exit code, and the line for stderr where there is something to say."""
    try:
        code, message = commands.main(list(arguments), prog_name="fastrank", standalone_mode=False) or 0, ""
    except _Stop as stop:
        code, message = stop.code, str(stop)
    except (KeyboardInterrupt, click.Abort):  # before the command began, or after it ended
        code, message = INTERRUPTED, "interrupted."
    except click.ClickException as error:
        code, message = BAD_INPUT, _usage(error)
    except OSError as error:
        where = "standard output" if error.filename is None else os.fsdecode(error.filename)
        code, message = BAD_INPUT, f"{where}: {error.strerror or error}."
    return code, one_line(" ".join(message.split()))


def _write_in_any_encoding() -> None:
    """Let no letter end a run: what the encoding of the terminal or file does not have is written as near to it as can be."""
    codecs.register_error("fastrank", _as_near)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="fastrank")


def _as_near(error: UnicodeError) -> tuple[str, int]:
    """The signs that tables and formulas have in letters that every encoding has; of ids, which must stay different, the escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = {"−": "-", "–": "-", "×": "x", "…": "...", "·": "*", "α": "alpha", "Σ": "sum", "θ": "theta"}
    text = error.object[error.start : error.end]
    return "".join(signs.get(sign) or sign.encode("ascii", "backslashreplace").decode() for sign in text), error.end


def _wake_on_interrupt() -> None:
    """Make one Ctrl-C enough.

    Python acts on a signal between two steps of its own. One that comes in library code on its way into a read of a silent pipe is only
    noted there, and the read then waits for ever: such a read is woken by the same signal again until Python has acted on it.
    """
    main_thread = threading.main_thread()
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler and threading.current_thread() is main_thread
    if not (ours and hasattr(signal, "pthread_kill")):
        return
    acted = threading.Event()
    told, teller = os.pipe()
    os.set_blocking(teller, False)

    def act(_number: int, _frame: object) -> None:
        acted.set()
        raise KeyboardInterrupt

    def watch() -> None:
        os.read(told, 1)
        while not acted.wait(0.1):
            signal.pthread_kill(main_thread.ident or 0, signal.SIGINT)

    signal.signal(signal.SIGINT, act)
    signal.set_wakeup_fd(teller, warn_on_full_buffer=False)
    threading.Thread(target=watch, daemon=True).start()


class _Needless:
    """Pretend that what no command needs is not installed, as long as it would only be looked at in passing.

    pyarrow imports pandas before it converts its first array, 0.3 s; numba imports coverage, and, to see whether there is a BLAS, which
    no kernel uses, scipy.linalg: 0.15 s.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        asking = sys.modules.get("numba.np.arraymath")
        numba_asks = asking is not None and not hasattr(asking, "_HAVE_BLAS")
        if name in ("pandas", "coverage") or (name == "scipy.linalg" and numba_asks):
            raise ModuleNotFoundError(name, name=name)


def _usage(error: click.ClickException) -> str:
    """What click says, with the way to help."""
    message = error.format_message().rstrip()
    context = getattr(error, "ctx", None)
    hint = "" if context is None else f" See {context.command_path} --help."
    return message + ("" if message.endswith((".", "?", ")")) else ".") + hint
