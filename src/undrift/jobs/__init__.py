"""The jobs of the command line: files in, predictions, a model and a summary out."""

from .adapt import Adapted, run_adapt, run_predict
from .inputs import AdaptJob, Tell


def run_adapt_on(*args, **kwargs) -> Adapted:
    """Run the adapt job on a Dask cluster; see `on_dask`, which needs the `dask` extra."""
    from .on_dask import run_adapt_on

    return run_adapt_on(*args, **kwargs)


__all__ = ["AdaptJob", "Adapted", "Tell", "run_adapt", "run_adapt_on", "run_predict"]
