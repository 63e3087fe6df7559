"""Ways in: Arrow data, Parquet and LETOR text become `Columns` of whole queries. Import the module you need: each loads pyarrow."""

from __future__ import annotations
