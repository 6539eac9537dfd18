"""Figures of README are those of the records."""

import re
from pathlib import Path

from undrift_lab.results.frame import make_frame
from undrift_lab.results.kinds import BY_FAMILY, group_tasks
from undrift_lab.results.records import read

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_has_the_mean_errors_over_families():
    tasks = group_tasks(make_frame(read(ROOT / "lab/results/kinds.jsonl"))).compared()
    (row,) = [line for line in README.splitlines() if line.startswith(f"| {BY_FAMILY}")]
    families = tasks.about["family"]
    values = [tasks.simple, tasks.take("undrift"), tasks.take("updated-asked-5")]
    means = [own.groupby(families).mean().mean() for own in values]
    assert re.findall(r"\d+\.\d", row) == [f"{100 * mean:.1f}" for mean in means]


def test_no_sentence_has_a_measured_error_by_hand():
    text = re.sub(r"<!-- bench table: .*?<!-- end -->", "", README, flags=re.DOTALL)
    section = text[text.index("## How good is it?") : text.index("## Commands")]
    assert not re.findall(r"\d+(?:\.\d+)?%", section)
