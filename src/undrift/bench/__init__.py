"""Benchmarks: plans, the runner, its records, and the paper's figures from them."""

from .generated import write_domains
from .plan import Plan, PlanError, Setting, load_plan
from .results import read
from .runner import Request, Summary, run

__all__ = ["Plan", "PlanError", "Request", "Setting", "Summary", "load_plan", "read", "run", "write_domains"]
