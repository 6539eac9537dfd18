"""Reports: one HTML page that shows what an adaptation did, how many predictions are wrong, and why."""

from .adaptation import adaptation_report, report_adaptation
from .batches import report_batches
from .data import DomainRows, ReportData, RunFacts
from .page import Report, render_page

__all__ = ["Report", "adaptation_report"]
