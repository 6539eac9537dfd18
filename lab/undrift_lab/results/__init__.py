"""Records of runs, and what is made of them: tables, verdicts, figures and pages."""

from .expected import are_met, check_bars, load_bars, verdict_table
from .figures import all_figures, choose_figures
from .frame import Where, find_failures, make_frame
from .page import fill_pages, make_table
from .records import Journal, Unwritable, journal, merge_records, read
from .tables import list_published, plan_table
