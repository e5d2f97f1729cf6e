import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from browser import open_page
from plmcore.train import report

METRICS = [
    {"step": s, "loss": 5 - s / 100, "lr": 1e-3, "norm": 1.0, "tokens_per_second": 1e4}
    for s in range(10, 110, 10)
]
METRICS += [{"step": 50, "eval_loss": 4.6, "eval_perplexity": 99.5}, {"step": 60, "loss": None}]


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href")]


def test_the_page_needs_nothing_else():
    reader = Reader()
    reader.feed(report.page("a run", {"steps": 100}, METRICS))
    assert reader.links == ["data:,"] and "script" not in reader.tags
    assert reader.tags.count("svg") == len(report.CHARTS)


def test_what_evaluations_find_has_charts():
    found = [
        {
            "step": s,
            "eval_accuracy": s / 10,
            "eval_loss": 1.0,
            "eval_sst2_loss": 2.0,
            "eval_rte_loss": 3.0,
            "eval_bleu_signature": "x",
        }
        for s in (1, 2)
    ]
    page = report.page("", {}, found)
    assert [p.partition("<")[0] for p in page.split("<h2>")[1:]] == [
        "Loss",
        "Held-out loss by task",
        "Held-out accuracy",
    ]
    assert "sst2 loss, last 2" in page and "rte loss, last 3" in page and "held out, last 0.2" in page


def svgs(page):
    for piece in page.split("<svg")[1:]:
        yield ET.fromstring("<svg" + piece.partition("</svg>")[0] + "</svg>")


def test_curves_lie_inside_their_charts():
    for svg in svgs(report.page("", {}, METRICS)):
        lines = svg.findall("polyline")
        assert lines
        for line in lines:
            for point in line.get("points").split():
                x, y = map(float, point.split(","))
                assert report.LEFT - 0.1 <= x <= report.WIDTH - report.RIGHT + 0.1
                assert report.TOP - 0.1 <= y <= report.HEIGHT - report.BOTTOM + 0.1


def test_a_falling_loss_falls_on_the_page():
    line = next(svgs(report.page("", {}, METRICS[:10]))).find("polyline")
    ys = [float(p.split(",")[1]) for p in line.get("points").split()]
    assert ys == sorted(ys) and ys[0] < ys[-1]  # downwards on a page


def test_the_picture_is_a_file_of_its_own():
    svg = ET.fromstring(report.picture(METRICS))
    space = "{http://www.w3.org/2000/svg}"
    assert svg.tag == space + "svg" and len(svg.findall(space + "polyline")) == 2
    assert [t.text for t in svg.findall(space + "text")][-2:] == ["training, last 4", "held out, last 4.6"]
    assert ET.fromstring(report.picture([])).findall(space + "polyline") == []


def test_texts_cannot_become_markup():
    page = report.page("<b>", {"<i>": "<script>"}, [{"step": 3, "sample": "</pre><script>alert(1)</script>"}])
    assert "<script" not in page and "&lt;script&gt;" in page


@pytest.mark.browser
def test_a_browser_draws_the_curves(tmp_path):
    (tmp_path / "report.html").write_text(report.page("a run", {"steps": 100}, METRICS))
    opened = open_page(tmp_path / "report.html", tmp_path / "profile")
    assert opened.console == []
    assert len(opened.elements("svg")) == len(report.CHARTS)
    lines = opened.elements("polyline")
    assert len(lines) == sum(map(len, report.CHARTS.values()))
    assert max(len(line["points"].split()) for line in lines) == 10


def test_without_metrics_there_are_no_charts():
    assert "<svg" not in report.page("empty", {}, [])


def test_many_points_are_thinned():
    points = [(s, 1.0) for s in range(12_345)]
    thin = report.thinned(points)
    assert len(thin) <= report.MOST_POINTS and thin[-1] == (12_344, 1.0)


@pytest.mark.parametrize("low, high", [(0, 1), (1e-9, 3e-9), (-5, 12), (4.6, 4.6), (0, 0), (1e8, 3e8)])
def test_ticks(low, high):
    axis = report.Axis([low, high], 100)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 12
    assert all(-1e-6 <= axis.place(t) <= 100 + 1e-6 for t in ticks)


@pytest.mark.parametrize(
    "value, text", [(12_000, "12,000"), (0.25, "0.25"), (3e-5, "3e-05"), (0, "0"), (1e9, "1e+09")]
)
def test_numbers(value, text):
    assert report.number(value) == text
