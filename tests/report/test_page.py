"""The page, as a browser shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.report.browser import browsing
from tests.report.made import DAY, DEVELOPER, FLUX, MONDAY, OBSERVING, SHIPPED, observed, policies, record
from webhook.policy.compiled import globs
from webhook.report.asking import Asked
from webhook.report.html import MAX_ROWS, page
from webhook.report.records import Record
from webhook.report.summary import summarise

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

PHONE, DESK, PAPER = ({"width": width, "height": 900} for width in (390, 1280, 720))
HOSTILE = (
    "</script><script>document.title='gone'</script>",
    '"><img src=x onerror="document.title=\'gone\'">',
    "' onmouseover='document.title=1' x='",
    "</style><style>*{display:none}</style>",
    "<!--",
    "\u202egnp.exe\u202c",
    "{{ 7 * 7 }}{% raw %}",
    "a\nb\x00c",
    "شركة",
    "&lt;b&gt;",
)


def drawn(records: Sequence[Record]) -> str:
    return page(summarise(records, [], Asked(), MONDAY))


def some() -> list[Record]:
    return [
        record(count=7, last=MONDAY + DAY),
        record(policy="images", manager="kubectl-set", paths=(".spec.template.spec.containers[*].image",), count=30),
        record(policy="shares", manager="kustomize-controller", user=FLUX, would="release", event="share", count=2),
        record(policy="shares", manager="ci", would="record", dry_run=True, owner=""),
    ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as running:
        yield running


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Any]:
    """Opens a page from a file, with no network at all; fails on anything that its scripts or its policy complain of."""
    contexts, said = [], []

    def show(text: str, **options: Any) -> Page:
        file = tmp_path / "report.html"
        file.write_text(text, encoding="utf-8")
        context = browser.new_context(**({"viewport": DESK} | options))
        contexts.append(context)
        context.route(lambda url: not url.startswith("file:"), lambda route: route.abort())
        context.set_default_timeout(60_000)
        opened = context.new_page()
        opened.on("console", lambda message: said.append(message.text))
        opened.on("pageerror", lambda error: said.append(str(error)))
        opened.on("request", lambda request: said.append(request.url) if request.url != file.as_uri() else None)
        opened.goto(file.as_uri())
        return opened

    yield show
    for context in contexts:
        context.close()
    assert said == []


def rows(table: Locator) -> list[str]:
    """The heads of the rows that can be seen."""
    return [" ".join(text.split()) for text in table.locator("tbody tr:visible th").all_inner_texts()]


def test_what_is_filtered_is_what_is_seen(shown: Any) -> None:
    opened = shown(drawn(some()))
    writers, every = opened.locator("#writers table"), opened.locator("#enforced table")
    assert len(rows(writers)) == 4
    opened.get_by_label("Filter", exact=True).fill("IMAGE kubectl")
    opened.get_by_text("3 of 10 rows").wait_for()
    assert rows(writers) == [f"kubectl-set (Update) by {DEVELOPER}"]
    assert rows(every) == ["images"]
    assert opened.locator("#matrix tbody tr:visible").count() == 1
    opened.get_by_label("Filter", exact=True).fill("release")
    opened.locator("#flapping").get_by_text("Nothing here fits the filter.").wait_for()
    assert rows(every) == ["shares"]
    opened.get_by_role("button", name="Clear").click()
    opened.wait_for_function("document.querySelectorAll('#writers tbody th').length === 4")
    opened.locator("#shown").get_by_text("rows").wait_for(state="detached")
    assert len(rows(writers)) == 4


def test_policy_and_effect_are_chosen_from_lists(shown: Any) -> None:
    opened = shown(drawn(some()))
    opened.get_by_label("Policy", exact=True).select_option("shares")
    assert rows(opened.locator("#enforced table")) == ["shares"]
    assert len(rows(opened.locator("#writers table"))) == 2
    opened.get_by_label("In Enforce").select_option("would be rewritten")
    assert rows(opened.locator("#writers table")) == [
        f"kustomize-controller (Apply) by {FLUX}".replace("Apply", "Update")
    ]


def test_a_table_is_sorted_by_keyboard_and_says_so(shown: Any) -> None:
    opened = shown(drawn(some()))
    table = opened.locator("#enforced table")
    head = table.get_by_role("columnheader", name="Would fail")
    assert head.get_attribute("aria-sort") is None
    head.get_by_role("button").focus()
    opened.keyboard.press("Enter")
    assert (head.get_attribute("aria-sort"), rows(table)) == ("descending", ["images", "labels", "shares"])
    opened.keyboard.press("Space")
    assert (head.get_attribute("aria-sort"), rows(table)) == ("ascending", ["shares", "labels", "images"])
    opened.keyboard.press("Shift+Tab")
    opened.keyboard.press("Shift+Tab")
    opened.keyboard.press("Enter")
    assert rows(table) == ["images", "labels", "shares"]
    assert head.get_attribute("aria-sort") is None


def test_times_and_numbers_are_sorted_as_such(shown: Any) -> None:
    many = [record(user=f"u{count}", count=count, last=MONDAY + DAY * (count % 7)) for count in (9, 100, 20)]
    opened = shown(drawn(many))
    table = opened.locator("#matrix table")
    for head, expected in (("Events", ["u100", "u20", "u9"]), ("Last seen", ["u20", "u100", "u9"])):
        table.get_by_role("columnheader", name=head).get_by_role("button").click()
        assert rows(table) == expected


def test_a_number_by_path_is_at_most_where_it_is_and_each_effect_has_its_own(shown: Any) -> None:
    both = (".metadata.labels.new", ".metadata.labels.team")
    opened = shown(drawn([record(), record(policy="observe", paths=both, count=1500, would="record")]))
    row = opened.locator("#matrix tbody tr:visible", has_text=".metadata.labels.team")
    told = [" ".join(text.split()) for text in row.locator("td").all_inner_texts()[2:4]]
    assert told == ["would fail 1 only recorded ≤1,500", "≤1,500"]
    assert "Writes" not in opened.locator("#matrix thead").inner_text()


def test_on_a_phone_nothing_is_wider_than_the_screen(shown: Any) -> None:
    records = observed(policies(OBSERVING, SHIPPED), times=2)
    long = record(
        user="u" * 300, manager="m" * 128, paths=("." + "p" * 500,), policy="x" * 200, name="n" * 250, count=999
    )
    opened = shown(drawn([*records, long]), viewport=PHONE, has_touch=True, is_mobile=True)
    assert opened.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    texts = opened.locator("#writers tbody tr:visible").first
    assert texts.bounding_box()["width"] <= PHONE["width"]
    card = "getComputedStyle(document.querySelector('#writers tbody td'), '::before').content"
    assert opened.evaluate(card) == '"In Enforce"'
    opened.locator("#writers").get_by_label("Sort by").select_option("Events")
    assert rows(opened.locator("#writers table"))[0] == f"{'m' * 128} (Update) by {'u' * 300}"
    assert opened.locator("#writers table").get_by_role("row").count() > 20  # still a table to whoever cannot see it


def test_without_scripts_every_row_can_be_read(shown: Any) -> None:
    opened = shown(drawn(some()), java_script_enabled=False)
    assert rows(opened.locator("#enforced table")) == ["images", "labels", "shares"]
    assert len(rows(opened.locator("#matrix table"))) == 4
    assert not opened.locator("#filter").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(shown: Any, scheme: str) -> None:
    opened = shown(drawn(some()), color_scheme=scheme)
    ratios: dict[str, float] = opened.evaluate(CONTRAST)
    assert len(ratios) > 10
    assert {text: round(ratio, 2) for text, ratio in ratios.items() if ratio < 4.5} == {}
    assert (
        opened.evaluate("getComputedStyle(document.body).backgroundColor")
        == {
            "light": "rgb(255, 255, 255)",
            "dark": "rgb(20, 23, 27)",
        }[scheme]
    )


def test_on_paper_all_is_there_and_nothing_to_press(shown: Any) -> None:
    paths = tuple(f".spec.p{number}" for number in range(9))
    opened = shown(drawn([*some(), record(paths=paths, policy="long")]))
    assert not opened.get_by_text(".spec.p8").first.is_visible()
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    opened.emulate_media(media="print")
    opened.set_viewport_size(PAPER)
    assert opened.evaluate("document.documentElement.scrollWidth") == PAPER["width"]
    assert opened.get_by_text(".spec.p8").first.is_visible()
    assert not opened.locator("#filter").is_visible()
    assert len(opened.pdf()) > 10_000


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(shown: Any, name: str) -> None:
    field = replace(record(count=5), policy=name, rule=name, resource=name, namespace=name, name=name, owner=name)
    hostile = replace(field, manager=name, operation=name, user=name, mode=name, paths=(name,), event=name)
    flapping = record(count=5, policy=name, manager=name, user=name, paths=(name,), owner="x (Apply)")
    report = summarise([hostile, flapping], [], Asked(None, globs([name])), MONDAY)
    text = page(replace(report, sources=(name,), notes=(name,)))
    assert tags(text) == tags(drawn([record(count=5), record(count=5, policy="other", owner="x (Apply)")]))
    opened = shown(text)
    assert opened.title() == "fieldwarden: if enforced"
    told = opened.locator("#enforced tbody th").first
    assert told.inner_text() == "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in name)
    opened.get_by_label("Policy", exact=True).select_option(index=1)
    assert opened.locator("#enforced tbody th:visible").count() == 1
    assert told.bounding_box()["height"] > 0


def test_a_long_table_is_cut_and_says_so() -> None:
    text = drawn([record(user=f"u{number}") for number in range(MAX_ROWS + 5)])
    assert f"The first {MAX_ROWS:,} of {MAX_ROWS + 5:,}" in text
    assert text.count("<tr") < 2 * MAX_ROWS + 100


def test_nothing_recorded_is_a_page_too(shown: Any) -> None:
    opened = shown(drawn([]))
    assert opened.get_by_text("Nothing that was asked for is recorded.").is_visible()
    assert opened.locator("table").count() == 0


class _Tags(HTMLParser):
    """The kinds of elements and of attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, key) for key, _ in attrs} | {(tag, "")}


def tags(text: str) -> set[tuple[str, str]]:
    parser = _Tags()
    parser.feed(text)
    return parser.found


CONTRAST = """() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const found = {};
  for (const node of document.querySelectorAll("h1, h2, p, .effect, .count, .soft, a, th, td, label, summary, .by")) {
    if (!node.checkVisibility() || !node.textContent.trim()) continue;
    const style = getComputedStyle(node);
    const [one, other] = [light(parts(style.color)), light(behind(node))].sort((a, b) => b - a);
    found[node.tagName + "." + node.className] = Math.min(
      found[node.tagName + "." + node.className] ?? 99, (one + 0.05) / (other + 0.05) * Number(style.opacity) ** 2);
  }
  return found;
}"""
