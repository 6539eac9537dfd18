"""Reports: one HTML page that shows what happened and why."""

from .page import Report
from .sources import adaptation_report, benchmark_report, job_report

__all__ = ["Report", "adaptation_report", "benchmark_report", "job_report"]
