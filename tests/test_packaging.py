"""What is built and shipped: the wheel, the sdist and their metadata."""

from __future__ import annotations

import email
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
RUNTIME = {"click", "numba", "numpy", "pyarrow", "rich", "scipy"}

pytestmark = pytest.mark.repository


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel made from that sdist: what is missing from the one is missing from the other."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(built.glob("*.whl")))


@pytest.fixture(scope="module")
def sdist(built: Path) -> set[str]:
    """The sdist's files, without the name of the folder that holds them all."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        return {name.split("/", 1)[1] for name in archive.getnames()}


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return email.message_from_bytes(_of_dist_info(wheel, "METADATA"))


@pytest.fixture(scope="module")
def requirements(metadata: Message) -> list[Requirement]:
    return [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]


def _of_dist_info(wheel: zipfile.ZipFile, name: str) -> bytes:
    return wheel.read(next(path for path in wheel.namelist() if path.endswith(f".dist-info/{name}")))


def test_the_wheel_holds_every_module_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    modules = {str(path.relative_to(ROOT)) for path in (ROOT / "fastrank").rglob("*.py")}
    assert shipped == modules | {"fastrank/py.typed"}


def test_the_wheel_is_pure_python(built: Path) -> None:
    assert next(built.glob("*.whl")).name.endswith("-py3-none-any.whl")


def test_the_wheel_carries_the_licence(wheel: zipfile.ZipFile, metadata: Message) -> None:
    assert _of_dist_info(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert metadata["License-Expression"] == "Apache-2.0"


def test_the_command_is_installed(wheel: zipfile.ZipFile) -> None:
    assert _of_dist_info(wheel, "entry_points.txt").decode().split() == ["[console_scripts]", "fastrank", "=", "fastrank.cli:main"]


def test_the_sdist_can_be_tested(sdist: set[str]) -> None:
    expected = {
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "pyproject.toml",
        ".ci/run",
        "bench_data/make.py",
        "bench_data/sample.parquet",
    }
    tests = {f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")}
    assert expected | tests <= sdist


def test_no_build_leftovers_are_shipped(wheel: zipfile.ZipFile, sdist: set[str]) -> None:
    names = sdist | set(wheel.namelist())
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".nbi", ".nbc"))]
    assert not [name for name in names if name.startswith((".venv", "bench_data/out", ".hypothesis"))]


def test_the_name_and_the_python_versions(metadata: Message) -> None:
    assert metadata["Name"] == "fastrank-metrics"
    supported = SpecifierSet(metadata["Requires-Python"])
    assert "3.10" not in supported
    assert all(version in supported for version in ("3.11", "3.12", "3.13"))


def test_six_libraries_are_needed_at_run_time(requirements: list[Requirement]) -> None:
    needed = {requirement.name for requirement in requirements if requirement.marker is None}
    assert needed == RUNTIME
    assert all("extra ==" in str(requirement.marker) for requirement in requirements if requirement.marker is not None)


def test_every_requirement_has_a_lower_bound_and_no_upper_one(requirements: list[Requirement]) -> None:
    operators = {str(r): {specifier.operator for specifier in r.specifier} for r in requirements if r.name != "fastrank-metrics"}
    assert {text for text, found in operators.items() if found != {">="}} == set()


def test_the_extra_all_holds_every_extra_for_users(metadata: Message) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(metadata.get_all("Provides-Extra", [])) == set(extras)
    assert Requirement(extras["all"][0]).extras == set(extras) - {"all", "bench", "peers", "test"}
