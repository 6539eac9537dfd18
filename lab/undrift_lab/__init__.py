"""Benchmarks: plans, the runner, its records, and the figures and pages made of them."""
