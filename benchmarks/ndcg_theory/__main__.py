"""``python -m benchmarks.ndcg_theory``: generate, train, measure, draw, and write the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.ndcg_theory import drawing, numbers, page, study

ROOT = Path(__file__).parent.parent.parent
LTR = ROOT.parent / "shared" / "conformance" / "ltr"


def main(arguments: list[str] | None = None) -> int:
    """Run the study; 0 when every claim holds."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ndcg_theory", description="Repeat the study of NDCG.")
    parser.add_argument("--out", type=Path, metavar="DIR", default=ROOT / "docs", help="where the page and its figures go (docs)")
    parser.add_argument("--ltr", type=Path, metavar="DIR", default=LTR, help="folder of rank.train and rank.train.query")
    parser.add_argument("--quick", action="store_true", help="a fraction of the documents, and no lists of ten million")
    given = parser.parse_args(arguments)
    found = study.run(study.QUICK if given.quick else study.Setting(), given.ltr)
    cases = [] if given.quick else numbers.measure(6)
    drawing.draw(found.curves, given.out / "ndcg_theory", "generated")
    if found.real is not None:
        drawing.draw(found.real, given.out / "ndcg_theory", "letor")
    (given.out / "ndcg_theory.md").write_text(page.page(found, cases, "ndcg_theory"))
    holds = study.claims(found.curves)
    for claim, yes in holds.items():
        print("yes" if yes else "NO ", claim)
    for case in cases:
        print(f"{case.discount} {case.k_share or ''}: {case.mean:.6f}, {case.errors_off:.1f} standard errors from {case.expected:g}")
    return 0 if all(holds.values()) and all(case.errors_off <= 3 for case in cases) else 1


if __name__ == "__main__":
    sys.exit(main())
