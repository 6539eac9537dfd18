"""Benchmarks: plans, the runner, its records, and the paper's figures from them."""

from .plan import Plan, PlanError, Setting, load_plan
from .records import read
from .run import Request, Summary, run

__all__ = ["Plan", "PlanError", "Request", "Setting", "Summary", "load_plan", "read", "run"]
