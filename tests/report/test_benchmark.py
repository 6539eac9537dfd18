"""The benchmark's report: verdict, tables and figures from records."""

import json
import re

import pytest
from numpy.testing import assert_allclose
from scipy import stats

from undrift.report import benchmark_report
from undrift.report.benchmark import _chart, benchmark_data

ERRORS = {"svm": [0.24, 0.25, 0.22, 0.27, 0.3, 0.2], "msda-5": [0.17, 0.2, 0.16, 0.28, 0.21, 0.15]}
TASKS = [(s, t) for s in ("books", "dvd", "<i>") for t in ("books", "dvd", "<i>") if s != t]


def contract_records():
    """Records with what the contract promises, and no more."""
    return [
        {
            "corpus": "c", "source": source, "target": target, "method": method, "params": {},
            "transfer_error": error, "baseline_in_domain_error": 0.1, "transfer_loss": error - 0.1,
            "transfer_ratio": error / 0.1, "represent_seconds": 0.0 if method == "svm" else 3.0,
            "classify_seconds": 1.0, "n_train": 10,
            "n_test": 20, "seed": 0, "version": "0.1.0",
        }
        for method, errors in ERRORS.items()
        for (source, target), error in zip(TASKS, errors, strict=True)
    ]  # fmt: skip


def test_the_verdict_compares_the_best_with_the_baseline():
    (own,) = benchmark_data(contract_records())["verdict"]
    assert (own["best"], own["baseline"], own["n_tasks"], own["n_better"]) == ("msda-5", "svm", 6, 5)
    assert_allclose(own["error"], sum(ERRORS["msda-5"]) / 6, rtol=1e-12)
    gains = [a - b for a, b in zip(ERRORS["svm"], ERRORS["msda-5"], strict=True)]
    assert_allclose(own["p"], stats.wilcoxon(gains).pvalue, rtol=1e-12)


def test_every_figure_has_a_title_axes_and_a_table():
    html = benchmark_report(contract_records()).to_html()
    figures = re.findall(r"<figure.*?</figure>", html, flags=re.DOTALL)
    assert len(figures) == 4  # loss, ratio against time, and a matrix for each method
    for figure in figures:
        assert re.search(r"<h3>.+</h3>", figure)
        assert 'class="axis"' in figure
        assert "<table" in figure
    assert "<i>" not in html
    assert "&lt;i&gt;" in html


def test_a_failure_is_shown_with_its_cause():
    failed = {"corpus": "c", "source": "dvd", "target": "books", "method": "sda", "failed": "out of <memory>"}
    html = benchmark_report([*contract_records(), failed]).to_html()
    assert "sda on dvd-&gt;books: out of &lt;memory&gt;" in html


def test_records_are_read_from_files(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in contract_records()))
    assert benchmark_report(path).to_dict() == benchmark_report(contract_records()).to_dict()


def test_nothing_to_report_is_an_error():
    with pytest.raises(ValueError, match="no result to report on"):
        benchmark_report([])


def test_the_command_writes_the_page(tmp_path):
    from typer.testing import CliRunner

    from undrift.cli.app import app

    path, out = tmp_path / "results.jsonl", tmp_path / "results.html"
    path.write_text("".join(json.dumps(record) + "\n" for record in contract_records()))
    done = CliRunner().invoke(app, ["bench", "report", str(path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "msda-5 has the lowest mean error" in out.read_text(encoding="utf-8")


def test_published_times_and_notes_reach_the_report():
    figure = {
        "kind": "lines", "title": "t", "name": "n", "x_label": "x", "y_label": "y", "y_log": True,
        "series": [{"label": "a", "x": [1, 2], "y": [1.0, 2.0]}], "note": "on another machine",
        "published": [{"label": "a, the paper", "of": "a", "x": [2], "y": [5000.0]}],
    }  # fmt: skip
    chart = _chart(figure)
    assert ("a, the paper", "2", "5,000") in chart.rows
    assert "a, the paper: 5,000 at 2" in str(chart.svg)
    assert chart.note == "Lower is better. On another machine."
