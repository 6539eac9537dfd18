"""The pages of the repository are what one command makes of the results in it."""

import re
import shutil
from pathlib import Path

import pytest

from undrift.text import N_TERMS
from undrift_lab.cli import main
from undrift_lab.plan import load_plan
from undrift_lab.results.expected import are_met, check_bars, load_bars
from undrift_lab.results.records import read

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "lab/results").glob("*.jsonl"))


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return ended.value.code


def words_of(path):
    return sorted(re.findall(r"<text[^>]*>(.*?)</text>", path.read_text(encoding="utf-8")))


def test_one_command_makes_every_table_verdict_and_figure_as_they_are(tmp_path):
    for name in ("lab", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", tmp_path)
    assert run("pages", "--root", tmp_path) == 0
    for folder in ("lab", "docs"):
        for path in (tmp_path / folder).rglob("*"):
            if path.is_file():
                old, new = ROOT / path.relative_to(tmp_path), path
                if path.suffix == ".svg":  # other versions of matplotlib may place things otherwise
                    assert words_of(new) == words_of(old), path.name
                else:
                    assert new.read_bytes() == old.read_bytes(), path.name
    assert (tmp_path / "README.md").read_bytes() == (ROOT / "README.md").read_bytes()


def test_results_meet_what_is_expected_or_the_page_says_why_not_and_none_is_of_a_trial():
    records = [record for path in RESULTS for record in read(path)]
    verdicts = check_bars(load_bars("expected"), records)
    assert are_met(verdicts)
    are_without = [verdict.bar for verdict in verdicts if verdict.met is None]
    assert all(bar.claim and "SDA" in bar.missing for bar in are_without)
    assert not any(record.get("trial") for record in records)


def test_undrift_is_measured_with_as_many_terms_as_it_takes_by_default():
    for name, variants in (("kinds", None), ("multi", {"20000 terms", "inductive"}), ("full", {"files"})):
        plan = load_plan(name)
        settings = [setting for setting in plan.variants if variants is None or setting.name in variants]
        assert {v.max_features or plan.corpus_of(v).max_features for v in settings} == {N_TERMS}


def test_pages_are_short_and_their_tables_narrow():
    for name, most in (("lab/README.md", 2500), ("lab/pages/tables.md", 5000)):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert len(text.split()) <= most
        rows = [line for line in text.splitlines() if line.startswith("|")]
        assert max(line.count("|") - 1 for line in rows) <= 6
