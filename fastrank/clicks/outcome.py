"""What every function of click logs returns: a frozen record of arrays that shows itself and can be written down."""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.evaluation import to_json

if TYPE_CHECKING:
    import pyarrow as pa


class Outcome(abc.ABC):
    """The ways out that all results share. A result is a frozen dataclass that says what its rows are."""

    @abc.abstractmethod
    def columns(self) -> dict[str, Any]:
        """The result row by row: equally long arrays by name."""

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain numbers, lists and dicts."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        return {field.name: plain(getattr(self, field.name)) for field in fields if field.repr}

    def to_json(self) -> str:
        """`to_dict` as strict JSON; NaN is null."""
        return to_json(self.to_dict())

    def to_arrow(self) -> pa.Table:
        """`columns` as an Arrow table; the schema's metadata holds, under "fastrank", the fields that are no column, as JSON."""
        import pyarrow as pa

        columns = self.columns()
        rest = {name: value for name, value in self.to_dict().items() if name not in columns}
        return pa.table(columns).replace_schema_metadata({"fastrank": to_json(rest, indent=None)})

    def __repr__(self) -> str:
        from fastrank.report.clicked import text

        return text(self)

    def _repr_html_(self) -> str:
        from fastrank.report.clicked import text

        return text(self, "html")


def plain(value: Any) -> Any:
    """Arrays as lists and records as dicts, down to the last."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return value.to_dict() if isinstance(value, Outcome) else dataclasses.asdict(value)
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value.to_pylist() if hasattr(value, "to_pylist") else value
