"""Open a saved model for a command: its target, and the columns of the text of a file."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..persist import load_adapter
from ..text import DistilledText, TextAdapter
from .domains import find_text
from .job import ModelJob
from .tables import TableError, is_table

TextModel = TextAdapter | DistilledText
AnyModel = TypeVar("AnyModel", TextAdapter, TextModel)


def open_model(
    job: ModelJob, path: Path, load: Callable[[Path], AnyModel]
) -> tuple[AnyModel, str, tuple[str, ...]]:
    """Load the model of a job; return it, the name of its target, and the columns of the text of a file."""
    model = load_model(job, load)
    names = model.classifier_.target_names_
    listed = ", ".join(map(str, names))
    if job.domain is None and len(names) != 1:
        raise ValueError(f"the model has {len(names)} target domains: choose one with --domain: {listed}")
    if job.domain is not None and job.domain not in names:
        raise ValueError(f"the model has no target domain {job.domain!r}: its target domains are {listed}")
    return model, job.domain or str(names[0]), choose_text(model, job, path)


def load_updatable(path: Path) -> TextAdapter:
    """Load a model that holds its training rows."""
    adapter = load_adapter(path)
    if adapter.classifier_.memory_ is None:
        raise ValueError(
            f"{path} holds no training rows, which `undrift ask` and `undrift update` need: run "
            "`undrift adapt` again with --model and --updatable"
        )
    return adapter


def load_model(job: ModelJob, load: Callable[[Path], AnyModel]) -> AnyModel:
    """Load the model of a job, to compute on the job's device."""
    refuse_table(job.model)
    model = load(job.model)
    if job.device is not None and "device" in model.classifier_.get_params():  # not if it is distilled
        model.classifier_.set_params(device=job.device)
    return model


def refuse_table(model: Path) -> None:
    """Refuse a file of rows where a model is needed; the files of a command were probably exchanged."""
    if is_table(model):
        raise TableError(f"{model} is a file of rows, not a model: give the model first, then the rows")


def choose_text(
    model: TextModel, job: ModelJob, path: Path, columns: str = "text_columns"
) -> tuple[str, ...]:
    """Return the columns of the text: those given, those that the model remembers, or the file's only one."""
    return tuple(job.text or model.facts_.get(columns, ())) or find_text(path, job.reading, ())


def suggest(command: str, job: ModelJob, *words: str | Path) -> str:
    """Return a command to copy, for the same text and target of a model as those of a job."""
    text = [word for column in job.text for word in ("--text", column)]
    domain = ["--domain", job.domain] if job.domain else []
    return f"  {shlex.join(['undrift', command, *map(str, words), *text, *domain])}"
