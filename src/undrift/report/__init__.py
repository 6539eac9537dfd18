"""Reports: one HTML page that shows what an adaptation did, how many predictions are wrong, and why."""

from .batches import Batch, Part, PredictPage
from .content import describe_adaptation, record_run
from .data import DomainRows, InputFile, ReportData, RunFacts
from .page import LabelPage, LabelSetup, Report, adaptation_report, render_page

__all__ = ["Report", "adaptation_report"]
