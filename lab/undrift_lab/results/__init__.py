"""Records of runs, and what is made of them: tables, verdicts, figures and pages.

Only `records` is needed to run a plan; the other modules need pandas, and `draw` needs matplotlib.
"""
