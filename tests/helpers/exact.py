"""Estimators with settings that only tests need."""

from dataclasses import replace

from undrift import MSDA, MSDAClassifier
from undrift.method import AnchorSettings, Settings


class ExactClassifier(MSDAClassifier):
    """Works in float64: results do not depend on the order of sums."""

    _dtype = "float64"


class FewAnchors(MSDAClassifier):
    """Keeps fewer rows than a target has."""

    def make_settings(self) -> Settings:
        """Return the settings of the method, with fewer anchors."""
        return replace(super().make_settings(), anchors=AnchorSettings(targets=40))


class SpillingMSDA(MSDA):
    """Keeps no hidden row in memory."""

    _memory_budget = 1
