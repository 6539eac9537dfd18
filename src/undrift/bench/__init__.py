"""Benchmarks: plans, the runner, its records, and the paper's figures from them."""

from .generated import write_domains
from .plan import PlanError, load_plan
from .results import read
from .runner import Request, run
