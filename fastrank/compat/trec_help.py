"""The help of ``fastrank trec_eval``."""

from __future__ import annotations

from fastrank.compat.trec_options import Options, asked_lines, marked
from fastrank.convention import conventions

_FLAGS = """fastrank trec_eval [-h] [-q] [-m measure[.params]]... [-c] [-n] [-l num]
   [-J] [-N num] [-M num] [-R rel_format] [-T results_format] [-Z zmean_file] [-D level[.qid]]
   rel_info_file results_file

Evaluate the rankings in results_file against the judgements in rel_info_file, as trec_eval 10.0 does:
its flags, its output, its exit codes. A file is plain or packed; '-' is standard input.

 --help:
 -h: Print this, with the measures that -m names and the format that -R names, and exit.
 --version:
 -v: Print the version and exit.
 --query_eval_wanted:
 -q: Also print the values of each topic.
 --measure measure_name[.measure_params]:
 -m measure: Calculate and print this measure; may repeat. Parameters follow a point, separated by
    commas: -m P.5,10  -m ndcg_cut.10  -m ndcg.1=3.5,2=9  -m set_F.0.5. Several measures at once:
       official (the default), set, all_trec; and for other formats: prefs, all_prefs, qrels_jg.
 --complete_rel_info_wanted:
 -c: Average over all topics of the judgements; those without results count 0. Without -c they are
    left out.
 --level_for_rel num:
 -l num: The lowest label that counts as relevant. Default: 1.
 --nosummary:
 -n: Print no summary over all topics.
 --Judged_docs_only:
 -J: Remove documents that were not judged from the results first.
 --Number_docs_in_coll num:
 -N num: Documents in the collection, for utility.
 --Max_retrieved_per_topic num:
 -M num: Look at the first num documents of each topic.
 --Rel_info_format format:
 -R format: Format of rel_info_file: qrels (the default), qrels_jg, prefs or qrels_prefs.
 --Results_format format:
 -T format: Format of results_file: trec_results.
 --Zscore zmean_file:
 -Z zmean_file: Print z-scores, by the means and standard deviations in lines of zmean_file,
       qid  measure_name  mean  std_dev
    and -1000000 where there is none.
 --Debug_level num:
 -D num.qid: Evaluate only topic qid.

Exit codes: 0 success; 1 wrong usage or an unknown measure; 2 a file that cannot be read, or wrong
parameters of a measure; 4 judgements or results that cannot be evaluated; 7 no topic in both files.
"""

_RULE = "-----------------------\n"

_RESULTS = """Results_file format: Standard 'trec_results'
Lines of results_file are of the form
     030  Q0  ZF08-175-870  0   4238   prise1
     qid iter   docno      rank  sim   run_id
Documents are ranked by sim, the highest first, equal ones by docno in descending order. The rank is
not looked at, nor is what follows run_id; the last line's run_id is printed. Lines that begin with #
are comments.
"""

_JUDGEMENTS = {
    "qrels": """Rel_info_file format: Standard 'qrels'
Lines of rel_info_file are of the form
     qid  iter  docno  rel
rel is a whole number; below 0 it says that the document was in the pool and was not judged. iter is
not looked at.
""",
    "qrels_jg": """Rel_info_file format: 'qrels_jg', judgements of several judges
Lines of rel_info_file are of the form
     qid  ujg  docno  rel
ujg names the judge; measures are calculated for each judge and averaged.
""",
    "prefs": """Rel_info_file format: 'prefs', preferences between documents
Lines of rel_info_file are of the form
     qid  ujg  ujsubg  docno  rel_level
ujg names the judge, ujsubg a set of documents that this judge compared: of two, the one with the
higher rel_level is preferred. A document of rel_level 0 is not relevant.
""",
    "qrels_prefs": """Rel_info_file format: 'qrels_prefs', preferences in the form of qrels
Lines of rel_info_file are of the form
     qid  ujg  docno  rel_level
ujg names the judge; of two documents, the one with the higher rel_level is preferred.
""",
}

_TEXTS = {
    "runid": "    The last line's run_id in the results.\n",
    "relstring": """    The labels of the first N documents (default 10), a letter each: its digit, '>' above 9, '-' if it
    is not in the judgements, '.' if its label is below 0. Printed for topics only.
""",
}
_NO_MEASURES = "-- No measures indicated.\n   Request measure documentation using <-m measure> on command line\n"


def help_text(options: Options) -> str:
    """What -h prints."""
    formats = [_RESULTS if options.results_format == "trec_results" else None, _JUDGEMENTS.get(options.rel_format)]
    parts = [_FLAGS, *(each for each in formats if each is not None)]
    measures = [_measure_text(name) for name in marked(options)] if options.measures else [_NO_MEASURES]
    return "".join(f"{part}\n{_RULE}" for part in parts) + "Individual measure documentation for requested measures\n" + "".join(measures)


def _measure_text(name: str) -> str:
    if name in _TEXTS:
        return f"{name}\n{_TEXTS[name]}"
    lines, _ = asked_lines(Options(measures=((name, None),)))
    metric = lines[0].metric
    assert metric is not None
    default = (
        f"    Default usage:  -m {name}.{','.join(line.printed.removeprefix(name + '_') for line in lines)}\n" if len(lines) > 1 else ""
    )
    filled = metric.fill(conventions["trec_eval"])
    about = f"    {filled.title}\n    {lines[0].printed} = {filled.formula}\n    Source: {filled.source}\n"
    return f"{name}\n{about}{default}"
