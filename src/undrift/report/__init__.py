"""Reports: one HTML page that shows what an adaptation did, how many predictions are wrong, and why."""

from .content import adaptation_data
from .data import DomainRows, ReportData, RunFacts
from .page import Report, adaptation_report, render_page

__all__ = ["Report", "adaptation_report"]
