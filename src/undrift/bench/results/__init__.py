"""Records of runs, and what is made of them: measures, tables, verdicts, figures."""

from .expected import are_met, check_bars, load_bars
from .figures import ablation_figures, all_figures, choose_figures
from .measures import Where, by_task, failures, mean_of, mean_ratio, places, task
from .page import fill_pages, make_table
from .records import Journal, Unwritable, journal, merge_records, read
from .tables import published_rows, results_table
