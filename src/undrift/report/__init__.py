"""Reports: one HTML page that shows what an adaptation did, how many predictions are wrong, and why."""

from .data import DomainRows, ReportData, RunFacts
from .page import Report, adaptation_report, make_report, render_page

__all__ = ["Report", "adaptation_report"]
