"""The methods the paper compares with, each as a scikit-learn estimator.

None of them needs more than the core dependencies to be imported: `SDA` asks for torch when it is fitted.
"""

from .coda import CODA
from .scl import SCL
from .sda import SDA
