"""Running a plan: what is left to do, in which process, recorded as it finishes."""

from .run import STOPPED, Request, run
