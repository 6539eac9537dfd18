"""Reports: one HTML page that shows what happened and why; benchmark figures as files."""

from .build import FIGURE_FORMATS, adaptation_report, benchmark_report, job_report, write_figure
from .page import Report

__all__ = ["FIGURE_FORMATS", "Report", "adaptation_report", "benchmark_report", "job_report", "write_figure"]
