"""The command line of trec_eval: flags, measures and their parameters, as version 10 reads them."""

from __future__ import annotations

import getopt
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastrank.errors import InputError
from fastrank.metrics.base import Metric
from fastrank.metrics.grammar import trec_metrics
from fastrank.metrics.trec_names import MEASURES, NICKNAMES

USAGE = """Usage: fastrank trec_eval [-h] [-q] {-m measure}* trec_rel_file trec_top_file
   -h: Give full help information, including other options
   -q: In addition to summary evaluation, give evaluation for each query
   -m: calculate and print measures indicated by 'measure'
       ('-m all_trec' prints all qrels measures, '-m official' is default)
"""

# Exit codes of the C program.
USAGE_ERROR, INPUT_ERROR, CALCULATION_ERROR, NOTHING_TO_EVALUATE = 1, 2, 4, 7

FORMATS = ("qrels", "qrels_jg", "prefs", "qrels_prefs")

_SHORT = "hvqm:cl:nD:JN:M:R:T:oZ:"
_LONG = {
    "help": "h",
    "version": "v",
    "query_eval_wanted": "q",
    "measure=": "m",
    "complete_rel_info_wanted": "c",
    "level_for_rel=": "l",
    "nosummary": "n",
    "Debug_level=": "D",
    "Judged_docs_only": "J",
    "Number_docs_in_coll=": "N",
    "Max_retrieved_per_topic=": "M",
    "Rel_info_format=": "R",
    "Results_format=": "T",
    "Output_old_results_format": "o",
    "Zscore=": "Z",
}
_ATTRIBUTES = {"R": "rel_format", "T": "results_format", "Z": "zscores"}
_NUMBERS = {"l": "level", "N": "collection", "M": "depth"}
_SWITCHES = {"h": "help", "v": "version", "q": "per_query", "c": "complete", "J": "judged_only"}

# In the order of its output. The texts have a place of their own among the numbers.
_PLACES = list(MEASURES)
MEASURE_ORDER = ("runid", *_PLACES[: _PLACES.index("P") + 1], "relstring", *_PLACES[_PLACES.index("P") + 1 :])
_GROUPS = {name: ("runid", *names) for name, names in NICKNAMES.items()} | {"all_trec": ("runid", "relstring", *NICKNAMES["all_trec"])}
_RELSTRING_LENGTH = "10"


class Ending(Exception):  # noqa: N818 - not every ending is an error
    """The program ends: its exit code, and what it says on stderr."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Options:
    """What the command line says. `measures` are (name, parameters or None), as they were given."""

    files: tuple[str, ...] = ()
    measures: tuple[tuple[str, str | None], ...] = ()
    help: bool = False
    version: bool = False
    per_query: bool = False
    summary: bool = True
    complete: bool = False
    judged_only: bool = False
    level: int = 1
    depth: int | None = None
    collection: int = 0
    rel_format: str = "qrels"
    results_format: str = "trec_results"
    zscores: str | None = None
    debug: int = 0
    query: str | None = None


class Asked(NamedTuple):
    """A line of the output: the name in it, the measure, and its metric; None for a text, of `length` letters."""

    printed: str
    measure: str
    metric: Metric | None
    length: int = 0


def read_options(arguments: Sequence[str]) -> Options:
    """Read a command line. Raises `Ending` where the C program ends with its usage."""
    try:
        pairs, files = getopt.gnu_getopt(list(arguments), _SHORT, list(_LONG))
    except getopt.GetoptError as error:
        raise Ending(USAGE_ERROR, f"trec_eval: {error}\n{USAGE}") from None
    long = {f"--{name.removesuffix('=')}": letter for name, letter in _LONG.items()}
    read: dict[str, object] = {}
    measures = []
    for flag, value in pairs:
        letter = long.get(flag, flag[1:])
        if letter == "m":
            measures.append(_read_measure(value))
        elif letter in _SWITCHES:
            read[_SWITCHES[letter]] = True
        elif letter in _NUMBERS:
            read[_NUMBERS[letter]] = _whole_number(value)
        elif letter in _ATTRIBUTES:
            read[_ATTRIBUTES[letter]] = value
        elif letter == "n":
            read["summary"] = False
        elif letter == "D":
            level, _, query = value.partition(".")
            read |= {"debug": _whole_number(level), "query": query or None}
    options = Options(files=tuple(files), measures=tuple(measures), **read)  # type: ignore[arg-type]
    if options.help or options.version:
        return options
    if len(files) != 2:
        raise Ending(USAGE_ERROR, USAGE)
    if options.level < 1 or (options.depth is not None and options.depth < 1) or options.collection < 0:
        raise Ending(USAGE_ERROR, "trec_eval: -l and -M must be 1 or more, -N 0 or more.\n")
    if options.rel_format not in FORMATS:
        raise Ending(INPUT_ERROR, f"trec_eval: Illegal rel_format '{options.rel_format}'\n")
    if options.results_format != "trec_results":
        raise Ending(INPUT_ERROR, f"trec_eval: Illegal retrieval results format '{options.results_format}'\n")
    return options


def _whole_number(text: str) -> int:
    """As C's atol: the digits that a text begins with."""
    found = re.match(r"\s*[+-]?\d+", text)
    return int(found[0]) if found else 0


def _read_measure(text: str) -> tuple[str, str | None]:
    name, point, parameters = text.partition(".")
    if point and not parameters:
        message = f"trec_eval: improper measure in parameter '{name}'\n"
        raise Ending(USAGE_ERROR, f"{message}trec_eval: illegal measure '{name}'\n")
    if name not in _GROUPS and name not in MEASURE_ORDER:
        raise Ending(USAGE_ERROR, f"trec_eval: illegal measure '{name}'\n")
    return name, parameters or None


def marked(options: Options) -> list[str]:
    """The measures asked for, in the order of the output."""
    names = {each for name, _ in options.measures or (("official", None),) for each in _GROUPS.get(name, (name,))}
    return [name for name in MEASURE_ORDER if name in names]


def asked_lines(options: Options) -> tuple[list[Asked], list[str]]:
    """The lines of the output for one query, and notes on what the C program would do otherwise."""
    found, notes = [], []
    for name in marked(options):
        lists = [parameters for each, parameters in options.measures if each == name and parameters is not None]
        try:
            found += _asked_of(name, lists)
        except (InputError, ValueError) as error:
            raise Ending(INPUT_ERROR, f"trec_eval: Cannot initialize measure '{name}': {error}\n") from None
        if len(lists) > 1 and name in MEASURES and MEASURES[name].kind is not None:
            fate = "all of their parameters count" if MEASURES[name].defaults else "the first one counts"
            notes.append(f"-m {name} was given {len(lists)} times: {fate}; trec_eval takes the first without a word.")
    return found, notes


def _asked_of(name: str, lists: list[str]) -> list[Asked]:
    if name == "runid":
        return [Asked(name, name, None)]
    if name == "relstring":
        printed = f"{name}_{lists[0]}" if lists else name
        return [Asked(printed, name, None, max(_whole_number(lists[0] if lists else _RELSTRING_LENGTH), 0))]
    measure = MEASURES[name]
    if not lists or measure.kind is None:
        return [Asked(printed, name, metric) for printed, metric in trec_metrics(name)]
    if not measure.defaults:
        [(_, metric)] = trec_metrics(f"{name}.{lists[0]}")
        return [Asked(f"{name}_{lists[0]}", name, metric)]
    read = int if measure.kind == "cutoffs" else float
    try:
        given = [[read(value) for value in each.split(",")] for each in lists]
    except ValueError:
        example = f"{name}.5,10" if measure.kind == "cutoffs" else f"{name}.0.5"
        raise ValueError(f"{' and '.join(map(repr, lists))} must be numbers separated by commas, as in {example}") from None
    if any(len(set(each)) < len(each) for each in given):
        raise ValueError("duplicate cutoffs detected")
    values = sorted(set(itertools.chain.from_iterable(given)))
    if measure.kind == "cutoffs" and values[0] <= 0:
        raise ValueError("Negative cutoff detected")
    return [Asked(printed, name, metric) for printed, metric in trec_metrics(f"{name}.{','.join(map(str, values))}")]
