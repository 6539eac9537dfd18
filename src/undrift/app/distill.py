"""The distill job: a saved model and target files in, a small model of terms out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from ..persist import load_adapter, save_model
from ..results import Label
from ..text import DistilledText, TextAdapter
from .domains import JobDomain, read_domains, refuse_overwriting
from .drift import describe_target
from .job import DistillJob, ShowStage, Summary, ignore_stage
from .models import choose_text, load_model
from .tables import TableError, check_file


@dataclass(frozen=True)
class DistilledFile:
    """Where a distilled model is, how large, and how faithful."""

    out: str
    bytes: int
    vocabulary: int
    ridge: float
    fidelity: Mapping[str, float]  # agreement with the full model, and errors

    @classmethod
    def of(cls, model: DistilledText, path: Path) -> DistilledFile:
        """Describe a model that was saved."""
        fidelity, ridge = dict(model.fidelity_), model.classifier_.ridge_
        return cls(str(path), path.stat().st_size, len(model.terms_), ridge, fidelity)

    def describe(self) -> str:
        """Say where it is, its size, and how well it agrees with the full model."""
        known = self.fidelity
        line = f"Distilled model: {self.out}, {self.bytes / 1e6:.1f} MB, {self.vocabulary:,} terms; "
        line += f"it agrees with the full model on {known['agreement']:.1%} of {known['n_held_out']:,} "
        line += "held-out rows"
        if known["n_scored"]:
            line += (
                f" and is wrong on {known['error']:.1%} of the {known['n_scored']:,} labelled ones, "
                f"the full model on {known['adapted_error']:.1%}"
            )
        return f"{line}."


def run_distill(job: DistillJob, show_stage: ShowStage = ignore_stage) -> Summary:
    """Distill a saved model by the rows of files."""
    refuse_overwriting(job.out, [job.model, *job.targets])
    check_file(job.out)
    adapter = load_model(job, load_adapter)
    names = find_targets(adapter, job)
    text = choose_text(adapter, job, job.targets[0])
    read = read_domains(job.targets, job.reading, text, show_stage, job.target_label)
    show_stage("distilling", None)
    targets = [replace(target, name=name) for target, name in zip(read, names, strict=True)]
    model = distill_domains(adapter, targets)
    show_stage("writing", None)
    save_model(model, job.out)
    file = DistilledFile.of(model, job.out)
    n_rows, n_bad = sum(target.n_rows for target in targets), sum(target.n_bad for target in targets)
    facts = {"model": str(job.model), "rows": n_rows, "bad_rows": n_bad, **asdict(file)}
    return Summary(facts, [file.describe()])


def find_targets(adapter: TextAdapter, job: DistillJob) -> list[str]:
    """Return the model's target that every file holds: by the names given, else by the file's name."""
    names = list(map(str, adapter.classifier_.target_names_))
    if job.domains and len(job.domains) != len(job.targets):
        raise TableError(
            f"--domain is given {len(job.domains)} times for {len(job.targets)} targets: give one for each"
        )
    if len(names) == 1 and not job.domains and len(job.targets) == 1:
        return names
    wanted = job.domains or [str(path) if str(path) in names else path.name for path in job.targets]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise TableError(
            f"the model has no target domain {unknown[0]!r}: its target domains are {', '.join(names)}; "
            "name one for each file with --domain"
        )
    return list(wanted)


def distill_domains(adapter: TextAdapter, targets: Sequence[JobDomain]) -> DistilledText:
    """Distill a model from the documents of targets, as many as are here."""
    documents: dict[str, list[str]] = {}  # several files may be of one target
    labels: dict[str, list[Label | None]] = {}
    for target in targets:
        is_whole = target.labels is not None and len(target.labels) == len(target.documents)
        documents.setdefault(target.name, []).extend(target.documents)
        known = target.labels if is_whole and target.labels else [None] * len(target.documents)
        labels.setdefault(target.name, []).extend(known)
    truth = {name: np.array(own, dtype=object) for name, own in labels.items()}
    model = adapter.distill(documents, truth)
    references = {name: describe_target(model, texts) for name, texts in documents.items()}
    model.remember(**{**adapter.facts_, "references": references})
    return model
