"""The page: whole by itself, honest to screen readers, legible in light and dark, and working in a real browser."""

from __future__ import annotations

import html
import itertools
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import fastrank as fr
from fastrank.report.charts import Scale, tick_text
from fastrank.report.page import queries_shown
from fastrank.report.style import CSS

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium (apt-get install chromium)")
# Pages of many resamples are too large for plain Python.
pytestmark = pytest.mark.compiled
HOSTILE = '<script>alert("1")</script> & co'


def compared(qualities: dict[str, float], n_queries: int = 50, **options: Any) -> tuple[fr.Comparison, Any]:
    """A comparison and the function that explains its queries."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (n_queries, 12))
    labels[0] = 0
    shared = rng.normal(size=labels.shape)
    scores = {name: quality * labels + shared + 0.7 * rng.normal(size=labels.shape) for name, quality in qualities.items()}
    ids = [HOSTILE if i == 1 else f"query {i}" for i in range(n_queries)]
    by = {"part": ["x", HOSTILE] * (n_queries // 2)}
    systems = {
        name: fr.evaluate(
            labels.ravel(),
            each.ravel(),
            query_ids=np.repeat(ids, 12),
            metrics=["nDCG@10", "RR"],
            by=by if n_queries > 2 else None,
            bounds=True,
        )
        for name, each in scores.items()
    }

    def explain(system: str, query: str) -> Any:
        row = ids.index(query)
        return None if query == "query 2" else fr.explain("nDCG@10", labels[row], scores[system][row])

    return fr.compare(systems, **({"primary": "nDCG@10", "n_resamples": 200} | options)), explain


@pytest.fixture(scope="module")
def two() -> tuple[fr.Comparison, Any]:
    return compared({HOSTILE: 0.3, "new": 0.6})


@pytest.fixture(scope="module")
def pages(two: tuple[fr.Comparison, Any]) -> dict[str, str]:
    many, explain = compared({"a": 0.2, "b": 0.4, "c": 0.5, "d": 0.9})
    return {
        "two": two[0].to_html(two[1]),
        "four": many.to_html(explain),
        "anova": compared({"a": 0.2, "b": 0.4, "c": 0.5}, primary=None, test="anova")[0].to_html(title="Three of them"),
        "large": compared({"a": 0.2, "b": 0.4}, n_queries=400)[0].to_html(),
        "tiny": compared({"a": 0.2, "b": 0.9}, n_queries=6, interval="studentised")[0].to_html(),
        "one": compared({"a": 0.2, "b": 0.9}, n_queries=2)[0].to_html(),
        "same": fr.compare(dict.fromkeys("ab", evaluation()), primary="RR", n_resamples=100).to_html(),
    }


def evaluation() -> fr.Evaluation:
    rng = np.random.default_rng(1)
    return fr.evaluate(rng.integers(0, 3, (30, 5)), rng.random((30, 5)), metrics=["nDCG@10", "RR"])


class Reader(HTMLParser):
    """What a page is made of."""

    VOID = ("meta", "link", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()
        else:
            self.faults.append(f"</{tag}> inside {self.open[-3:]}")

    def of(self, *names: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.tags if tag in names]


@pytest.mark.parametrize("name", ["two", "four", "anova", "large", "tiny", "one"])
def test_a_page_is_well_formed_and_leads_nowhere_but_to_itself(pages: dict[str, str], name: str) -> None:
    page = Reader(pages[name])
    assert page.faults == []
    assert page.open == []
    ids = [each["id"] for _, each in page.tags if each.get("id")]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert not attributes.keys() & {"src", "srcset", "action", "onclick", "onload"}
        if href := attributes.get("href"):
            assert href == "data:," if tag == "link" else href[0] == "#" and href[1:] in ids
        for reference in (attributes.get("aria-labelledby") or "").split():
            assert reference in ids
    assert "http" not in re.sub(r"http-equiv", "", pages[name])
    assert "url(" not in pages[name]


@pytest.mark.parametrize("name", ["two", "four", "anova", "large", "tiny", "one"])
def test_a_page_speaks_to_screen_readers_and_the_keyboard(pages: dict[str, str], name: str) -> None:
    page = Reader(pages[name])
    assert page.of("html")[0]["lang"] == "en"
    for drawing in page.of("svg"):
        assert drawing.get("aria-hidden") == "true" or (
            drawing["role"] == "img" and (drawing.get("aria-label") or drawing.get("aria-labelledby"))
        )
    tables = len(page.of("table"))
    assert tables == len(page.of("caption")) == len([each for each in page.of("div") if each.get("role") == "region"])
    assert all(each["scope"] in ("row", "col") for each in page.of("th"))
    levels = [int(tag[1]) for tag, _ in page.tags if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    assert page.of("main")
    assert page.of("nav")[0]["aria-label"]
    assert [each["href"] for each in page.of("a") if each.get("class") == "skip"] == ["#main"]


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_words_stand_out_from_the_page_as_the_guidelines_ask(scheme: int) -> None:
    # WCAG 2.2, 1.4.3: 4.5 to 1 for text; 1.4.11: 3 to 1 for the marks of charts.
    palette = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6})", palette))

    def contrast(one: str, other: str) -> float:
        low, high = sorted(luminance(colours[name]) for name in (one, other))
        return (high + 0.05) / (low + 0.05)

    for ground in ("page", "card"):
        for words in ("ink", "soft", "link", "better", "worse"):
            assert contrast(words, ground) >= 4.5, (words, ground)
    for mark in ("better", "worse", "neutral", "second", "mark", *(f"c{i}" for i in range(8))):
        assert contrast(mark, "page") >= 3, mark


def test_what_users_name_is_text_and_nothing_else(pages: dict[str, str]) -> None:
    assert HOSTILE not in pages["two"]
    assert "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; co" in pages["two"]
    assert pages["two"].count("<script") == 2


def test_all_numbers_stand_in_the_page_as_json(two: tuple[fr.Comparison, Any], pages: dict[str, str]) -> None:
    told = re.search(r'<script type="application/json" id="comparison">(.*?)</script>', pages["two"], re.DOTALL)
    assert told
    assert json.loads(told[1]) == json.loads(two[0].to_json())


def test_the_sections_are_those_that_have_something_to_say(pages: dict[str, str]) -> None:
    assert all(
        f'id="{name}"' in pages["two"]
        for name in ("by-how-much", "means", "queries", "movers", "where", "how-many", "notes", "formulas", "worked")
    )
    assert 'id="metrics"' not in pages["two"]
    assert "discriminative power" in pages["four"]
    assert "analysis of variance" in pages["anova"]
    assert "<h1>Three of them</h1>" in pages["anova"]
    assert 'id="worked"' not in pages["large"]
    assert "have the same RR on all" in pages["same"]
    assert 'id="movers"' not in pages["same"]
    for word in ("nDCG(gain=&#x27;exp2&#x27;", "log2(r + 1)", "Järvelin", "Fisher 1935", "Efron"):
        assert word in pages["two"]


def test_queries_that_moved_most_are_linked_to_their_worked_values(two: tuple[fr.Comparison, Any], pages: dict[str, str]) -> None:
    comparison, _ = two
    page = Reader(pages["two"])
    linked = {each["href"][3:] for each in page.of("a") if (each.get("href") or "").startswith("#q-")}
    worked = {each["id"][2:] for each in page.of("details")}
    assert linked == worked
    places = {query: str(place) for place, query in enumerate(comparison.query_ids.to_pylist())}
    assert linked == {places[query] for query in queries_shown(comparison) if query != "query 2"}
    assert "IDCG@10" in pages["two"]


def test_each_query_has_a_bar_with_its_name_where_they_are_few(pages: dict[str, str]) -> None:
    assert re.search(r"<rect[^>]*><title>query \d+: [+-]0\.\d{4}</title>", pages["two"])
    assert not re.search(r"<rect[^>]*><title>query", pages["large"])


def test_an_interval_without_an_end_is_an_arrow(pages: dict[str, str]) -> None:
    assert "∞" in pages["tiny"]
    assert 'class="whisker arrow' in pages["tiny"]


def test_a_page_is_written_whole(two: tuple[fr.Comparison, Any], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    two[0].save_html(path, two[1], title="A & B")
    assert "<title>A &amp; B</title>" in path.read_text(encoding="utf-8")
    assert [each.name for each in tmp_path.iterdir()] == ["page.html"]
    assert two[0].to_html(two[1]) == two[0].to_html(two[1])


@pytest.mark.parametrize(
    ("scale", "n", "expected"),
    [
        (Scale(0, 1, 0, 100), 5, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (Scale(-0.03, 0.02, 0, 100), 3, [-0.02, 0, 0.02]),
        (Scale(1, 1000, 0, 100, log=True), 5, [1, 10, 100, 1000]),
        (Scale(50, 700, 0, 100, log=True), 5, [50, 100, 200, 500]),
        (Scale(2, 2, 0, 100), 5, [2]),
    ],
)
def test_ticks_are_round(scale: Scale, n: float, expected: list[float]) -> None:
    assert scale.ticks(n) == pytest.approx(expected)
    assert [tick_text(value) for value in (0.25, -0.5, 0, 12_000)] == ["0.25", "−0.5", "0", "12,000"]


def test_a_histogram_of_values_beyond_one_has_its_own_range() -> None:
    from fastrank.report.charts import histogram

    spread = histogram("h", 400, "title", "words", [("a", np.array([0.0, 3.0])), ("b", np.array([1.0, 2.0]))])
    assert ">3<" in spread
    same = histogram("h", 400, "title", "words", [("a", np.array([2.0, 2.0])), ("b", np.array([2.0, 2.0]))])
    assert ">2<" in same


# --- matplotlib -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dark", [False, True])
def test_figures_are_drawn_for_both_grounds(two: tuple[fr.Comparison, Any], tmp_path: Path, dark: bool) -> None:
    pytest.importorskip("matplotlib")
    tiny = compared({r"a $\no{formula": 0.2, "b": 0.9}, n_queries=6, interval="studentised")[0]
    many = compared({"a": 0.2, "b": 0.4, "c": 0.5})[0]
    without = fr.Evaluator(["RR"], per_query=False)
    without.update([[1, 0], [0, 1]])
    skipping = fr.evaluate([[0, 0], [0, 0]], metrics=["RR"], no_relevant="skip")
    figures = [each.plot(dark=dark) for each in (two[0], tiny, many, evaluation(), without.result(), skipping)]
    for i, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{i}.png", dpi=40)
        red, green, blue, _ = figure.get_facecolor()
        assert (red + green + blue < 1) is dark
    words = [text.get_text() for text in figures[0].axes[0].get_yticklabels()]
    assert any("nDCG@10" in each and "p = " in each for each in words)
    assert any("RR" in each and "watched" in each for each in words)


@pytest.mark.parametrize(("n_systems", "n_drawn"), [(3, 3), (10, 45), (12, 11)])
def test_a_figure_of_many_systems_draws_every_pair_and_its_queries(n_systems: int, n_drawn: int) -> None:
    pytest.importorskip("matplotlib")
    many = compared({f"s{i}": 0.1 * i for i in range(n_systems)}, n_resamples=100)[0]
    forest, queries = many.plot().axes
    named = [text.get_text() for text in forest.get_yticklabels()]
    drawn = [each for each in many.differences if each.metric == "nDCG@10"]
    if n_drawn < len(drawn):
        assert f"{n_drawn} of {len(drawn)} pairs, those of the best system" in " ".join(forest.get_title("left").split())
        drawn = [each for each in drawn if (each.baseline, each.system) in many.listed("nDCG@10")]
    assert len(named) == len(queries.get_yticks()) == n_drawn
    assert all(f"{each.system} − {each.baseline}" in words for each, words in zip(drawn, named, strict=True))
    # The squares of the forest stand at the differences.
    squares = [float(line.get_xdata()[0]) for line in forest.lines if line.get_marker() == "s"]
    assert squares == [each.difference.estimate for each in drawn]
    # Every query that moved stands in the histogram beside: the tallest bar is 0.8 high.
    for place, each in zip(range(n_drawn - 1, -1, -1), drawn, strict=True):
        bars = [bar for bar in queries.patches if bar.get_y() == pytest.approx(place - 0.4)]
        assert max(bar.get_height() for bar in bars) == pytest.approx(0.8)
        i, j = many.systems.index(each.baseline), many.systems.index(each.system)
        moved = many.values[j, 0] - many.values[i, 0]
        shown = [bar for bar in bars if bar.get_height() > 0]
        assert min(bar.get_x() for bar in shown) <= moved.min() + 1e-12
        assert moved.max() - 1e-12 <= max(bar.get_x() + bar.get_width() for bar in shown)


def test_a_missing_matplotlib_is_one_line(two: tuple[fr.Comparison, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(fr.InputError, match=r"pip install 'fastrank-metrics\[plot\]'"):
        two[0].plot()


# --- a browser ------------------------------------------------------------------------------------------------------------------


def chromium(tmp_path: Path, url: str, *flags: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM
    base = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={tmp_path}/profile")
    quiet = ("--disable-background-networking", "--disable-component-update", "--no-first-run", "--enable-logging=stderr")
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_proxy")}
    return subprocess.run([CHROMIUM, *base, *quiet, *flags, url], capture_output=True, text=True, timeout=180, env=environment, check=False)


def fetched(tmp_path: Path, page: str, *flags: str, fragment: str = "") -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """A page opened, and what was asked for on the net, apart from what the browser asks for itself."""
    path, log = tmp_path / "page.html", tmp_path / "net.json"
    path.write_text(page, encoding="utf-8")
    done = chromium(tmp_path, path.as_uri() + fragment, f"--log-net-log={log}", *flags)
    events = json.loads(log.read_text())["events"]
    hosts = {urlsplit(event["params"]["url"]).hostname or "" for event in events if "url" in event.get("params", {})}
    return done, {host for host in hosts if not host.endswith(("google.com", "googleapis.com", "gvt1.com"))}


@browser
@pytest.mark.parametrize("which", ["two", "four"])
def test_on_a_wide_screen_the_table_of_differences_is_seen_whole(pages: dict[str, str], tmp_path: Path, which: str) -> None:
    page = pages[which].replace(HOSTILE, "old").replace(html.escape(HOSTILE), "old")
    count = "const t = document.querySelector('.scroll'); document.title = `${t.innerText.includes('dz')} ${t.scrollWidth - t.clientWidth}`"
    path = tmp_path / "page.html"
    path.write_text(page.replace("</body>", f"<script>{count}</script></body>"), encoding="utf-8")
    done = chromium(tmp_path, path.as_uri(), "--window-size=1400,900", "--dump-dom")
    assert "<title>true 0</title>" in done.stdout


@browser
@pytest.mark.repository
def test_a_browser_follows_links_finds_no_fault_and_fetches_nothing(pages: dict[str, str], tmp_path: Path) -> None:
    query = next(each["id"] for each in Reader(pages["two"]).of("details"))
    done, hosts = fetched(tmp_path, pages["two"], "--dump-dom", fragment=f"#{query}")
    # The query that the address names is open, the others are not.
    assert [each["id"] for each in Reader(done.stdout).of("details") if "open" in each] == [query]
    assert not re.search(r"CONSOLE|Uncaught|Refused", done.stderr), done.stderr
    assert hosts == set()


@browser
@pytest.mark.repository
def test_a_page_that_fetched_something_or_had_a_fault_would_be_seen(pages: dict[str, str], tmp_path: Path) -> None:
    broken = pages["one"].replace("<h1>", "<img src='http://fastrank.invalid/x.png'><script>throw Error('fault')</script><h1>")
    done, hosts = fetched(tmp_path, broken, "--dump-dom")
    assert "Refused" in done.stderr or "violates" in done.stderr  # the page's own policy
    assert hosts == set()
    done, hosts = fetched(tmp_path, re.sub(r"<meta http-equiv[^>]*>", "", broken), "--dump-dom")
    assert "CONSOLE" in done.stderr
    assert hosts == {"fastrank.invalid"}


@browser
@pytest.mark.repository
@pytest.mark.parametrize(
    ("width", "flags"), [(1280, ()), (500, ()), (1280, ("--blink-settings=preferredColorScheme=0",))], ids=["wide", "narrow", "dark"]
)
def test_a_screenshot_has_the_ground_and_the_marks_it_should(
    pages: dict[str, str], tmp_path: Path, width: int, flags: tuple[str, ...]
) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow reads the screenshot; it comes with matplotlib")
    path, picture = tmp_path / "page.html", tmp_path / "page.png"
    path.write_text(pages["four"], encoding="utf-8")
    chromium(tmp_path, path.as_uri(), f"--window-size={width},2400", f"--screenshot={picture}", *flags)
    with image.open(picture) as opened:
        colours = {colour: count for count, colour in opened.convert("RGB").getcolors(1 << 20)}
    dark = bool(flags)
    ground, better = ((0x14, 0x17, 0x1A), (0x7F, 0xB0, 0xFF)) if dark else ((0xFF, 0xFF, 0xFF), (0x1F, 0x5F, 0xBF))
    assert max(colours, key=colours.__getitem__) == ground
    assert colours.get(better, 0) > 500


@browser
@pytest.mark.repository
def test_a_print_has_every_query_open(pages: dict[str, str], tmp_path: Path) -> None:
    path, printed = tmp_path / "page.html", tmp_path / "page.pdf"
    path.write_text(pages["two"], encoding="utf-8")
    chromium(tmp_path, path.as_uri(), "--no-pdf-header-footer", f"--print-to-pdf={printed}")
    n_pages = len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes()))
    # Three or four for the results, and about one for every two queries worked out.
    assert n_pages > len(Reader(pages["two"]).of("details")) / 3
