"""The page as a file: whole, small, and with no address in it; how the commands write it."""

import base64
import hashlib
import json
import os
import re

import pytest

from tests.helpers.commands import run_command
from undrift import UndriftError
from undrift.report import Report
from undrift.report.svg import Scale, find_end, nice_step, percent, tag
from undrift.report.verdict import write_estimate, write_percent


def test_it_is_small_and_names_no_address(report, unscored):
    for own in (report, unscored):
        html = own.to_html()
        assert len(html.encode()) < 1_000_000
        assert not re.search(r"(?:https?:)?//[\w.-]+\.\w", html)
        assert not re.search(r"<(?:link|iframe|object|embed|base)\b", html)
        assert html.count("<script") == 2


def test_no_element_carries_a_style_or_a_handler(report):
    """Within tags, that is; documents may say what they like."""
    tags = re.findall(r"<[a-z][^<>]*>", re.sub(r"<script.*?</script>", "", report.to_html(), flags=re.DOTALL))
    assert len(tags) > 500
    for own in tags:
        names = re.findall(r'\s([\w-]+)="', own)
        assert "style" not in names
        assert not [name for name in names if name.startswith("on")]


def test_text_from_right_to_left_begins_at_its_side_and_turns_no_number_round(report):
    page = report.to_html()
    assert page.count('<blockquote dir="auto">') == page.count('<article class="document">') > 0
    assert '<textarea id="try-text" dir="auto"' in page
    for line in re.findall(r'<p class="sum">.*', page):
        terms = re.findall(r"<small[^>]*>★?(?:<bdi>)?.*?</small>", line)[1:-1]  # of all contributions
        assert terms
        assert all("<bdi>" in term or term.endswith("other terms</small>") for term in terms)


def test_the_policy_allows_our_own_style_and_script_alone(report):
    html = report.to_html()
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for name in ("style", "script"):
        (content,) = re.findall(rf"<{name}>(.*?)</{name}>", html, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy


def test_saving_writes_the_page_or_the_data(report, tmp_path):
    page = report.save(tmp_path / "report.html")
    assert page.read_text(encoding="utf-8") == report.to_html()
    data = report.save(tmp_path / "report.json")
    assert json.loads(data.read_text(encoding="utf-8")) == report.to_dict()
    assert sorted(os.listdir(tmp_path)) == ["report.html", "report.json"]
    odd = report.to_dict() | {"title": "half a character: \ud800"}
    assert Report(odd, report._charts).save(tmp_path / "r.html").stat().st_size > 10_000
    assert repr(report) == "<Report: books → kitchen>"


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        *(
            (nice_step, step, nice)
            for step, nice in [(0.9, 1), (1.2, 2), (3, 5), (7, 10), (0.011, 0.02), (0, 1)]
        ),
        *(
            (percent, share, said)
            for share, said in [(0.5, "50%"), (0.001, "0.1%"), (0.0123, "1.2%"), (0, "0%")]
        ),
        *((write_percent, share, said) for share, said in [(0.12345, "12%"), (0.0999, "10%"), (1, "100%")]),
        *((write_percent, share, said) for share, said in [(0.0949, "9.5%"), (0, "0.0%")]),  # below a tenth
        (lambda ends: write_estimate(*ends), (0.12, 0.08, 0.171), ("12%", "8% to 17%")),
        (lambda ends: write_estimate(*ends), (0.033, 0.014, 0.151), ("3.3%", "1.4% to 15.1%")),
    ],
)
def test_steps_are_round_and_shares_have_the_digits_they_need(write, value, written):
    assert write(value) == (written if isinstance(written, (str, tuple)) else pytest.approx(written))


def test_scales_axes_and_tags_of_drawings():
    linear = Scale(0, 50, 10, 110)
    assert (linear(0), linear(50), linear(25)) == (10, 110, 60)
    assert linear.ticks() == [0, 10, 20, 30, 40, 50]
    assert find_end([2.0, 3.0]) > 3
    assert find_end([0.0]) == 1.0
    assert (
        tag("text", '<b>"&', data_term='"><i>')
        == '<text data-term="&#34;&gt;&lt;i&gt;">&lt;b&gt;&#34;&amp;</text>'
    )


@pytest.fixture
def two_files(reviews, tmp_path):
    books, y, kitchen, truth = reviews
    for name, texts, labels in (("books", books, y), ("kitchen", kitchen, truth)):
        rows = [{"text": t, "label": label} for t, label in zip(texts[:200], labels[:200], strict=True)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def adapt(folder, *more):
    """Run the command, and return its summary and the page."""
    command = ["adapt", folder / "books.jsonl", "--target", folder / "kitchen.jsonl", "--label", "label"]
    command += ["--out", folder / "out.csv", "--set", "layers=1", "--max-features", "150", "--text", "text"]
    summary = run_command(*command, "--report", folder / "report.html", *more)
    return summary, (folder / "report.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_adapt_writes_the_report_it_is_asked_for(two_files):
    summary, html = adapt(two_files, "--target-label", "label")
    assert summary["report"] == str(two_files / "report.html")
    assert f"adapted: {summary['targets'][0]['adapted_error']:.1%}" in html
    assert f"baseline: {summary['targets'][0]['baseline_error']:.1%}" in html
    command = re.sub(r"<[^>]*>", "", re.search(r'<pre id="command".*?</pre>', html, re.DOTALL)[0])
    assert "--max-features 150" in command
    assert "--seed" not in command
    assert hashlib.sha256((two_files / "books.jsonl").read_bytes()).hexdigest() in html
    (two_files / "more.jsonl").write_bytes((two_files / "kitchen.jsonl").read_bytes())
    _, html = adapt(two_files, "--target", two_files / "more.jsonl", "--target-label", "label")
    assert "books → kitchen + more" in html
    assert len(re.findall(r"<td>target</td>", html)) == 2
    assert "adapted, more" in html


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere/report.html", "cannot be written"), ("books.jsonl", "would replace another")],
)
def test_a_report_that_cannot_be_written_stops_the_job_before_it_starts(two_files, path, message):
    with pytest.raises((UndriftError, OSError), match=message):
        adapt(two_files, "--report", two_files / path)
    assert not (two_files / "out.csv").exists()
