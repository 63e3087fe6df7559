"""What the suites share: the size of their data."""

from __future__ import annotations

import pytest

from benchmarks.data import Data, draw


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--queries", type=int, default=200, help="queries of the data to measure on, in lists of 100")


@pytest.fixture(scope="session")
def n_queries(request: pytest.FixtureRequest) -> int:
    """How many queries the data has."""
    return int(request.config.getoption("--queries"))


@pytest.fixture
def data(n_queries: int) -> Data:
    """Lists of 100 documents, a tenth of them relevant."""
    return draw("tenth100", n_queries)
