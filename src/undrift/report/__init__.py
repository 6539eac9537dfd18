"""Reports: one HTML page that shows what happened and why."""

from .build import adaptation_report, benchmark_report, job_report
from .page import Report

__all__ = ["Report", "adaptation_report", "benchmark_report", "job_report"]
