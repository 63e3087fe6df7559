"""What the functions of this room return: frozen records that show themselves and can be written down."""

from __future__ import annotations

from fastrank.clicks.outcome import Outcome


class Finding(Outcome):
    """A result with the ways out of `Outcome`: `columns`, `to_dict`, `to_json`, `to_arrow`."""

    def __repr__(self) -> str:
        from fastrank.report.analysed import text

        return text(self)

    def _repr_html_(self) -> str:
        from fastrank.report.analysed import text

        return text(self, "html")
