"""Ways in: files of many formats, Arrow data and data frames become `Columns` of whole queries. Each module loads pyarrow."""

from __future__ import annotations
