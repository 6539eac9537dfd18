"""Estimators with settings that only tests need."""

from undrift import MSDA, MSDAClassifier


class ExactClassifier(MSDAClassifier):
    """Works in float64: results do not depend on the order of sums."""

    _dtype = "float64"


class SpillingMSDA(MSDA):
    """Keeps no hidden row in memory."""

    _memory_budget = 1


class PreciseMSDA(MSDA):
    """Multiplies in full float32 on a device."""

    _precision = "highest"
