"""`undrift label`: rows, labels and a model for a page on this machine, and the files that it writes."""

from __future__ import annotations

from pathlib import Path

from ..errors import count
from ..persist import load_adapter
from . import terminal
from .domains import read_domains
from .job import LabelJob, PredictJob, ShowStage, UpdateJob
from .label_server import LabelServer
from .labelling import LabelSession
from .models import open_model, suggest
from .predict import run_predict
from .terminal import describe_file
from .update import run_update


def run_label(job: LabelJob) -> None:
    """Serve the page until the session ends, and write its files."""
    server: LabelServer = terminal.run_job(lambda show: start_server(job, show))
    session = server.session
    terminal.say_line(f"Label rows at {server.address}")
    terminal.say_line(f"Answers are saved to {session.file.path}. Ctrl-C ends.")
    if not session.can_learn:
        terminal.say(f"Labels measure the error. {describe_unlearnt(job)}")
    with server.serve(job.opens_browser):
        server.written = lines = terminal.run_job(lambda show: finish_session(job, session, show))
    terminal.say_lines(lines)


def start_server(job: LabelJob, show_stage: ShowStage) -> LabelServer:
    """Read model, rows and labels, and return a server that is ready to serve."""
    adapter, target, text = open_model(job, job.input, load_adapter)
    (rows,) = read_domains([job.input], job.reading, text, show_stage)
    labels = job.labels or name_output(job, "labels.csv")
    if labels.suffix != ".csv" or labels.resolve() in (job.input.resolve(), job.model.resolve()):
        raise ValueError(f"{labels}: labels are kept in a file of their own that ends in .csv")
    show_stage("preparing the rows", None)
    given = adapter, rows.documents, labels
    session = LabelSession(*given, columns=text, target=target, learns_at_once=False)
    try:
        return LabelServer(session, job.input.name.split(".")[0], job.port)
    except OSError as error:
        raise ValueError(f"port {job.port} cannot be used ({error.strerror}): choose another one") from None


def name_output(job: LabelJob, ending: str) -> Path:
    """Return the path of an output beside the rows, such as kitchen.labels.csv."""
    return job.input.with_name(f"{job.input.name.split('.')[0]}.{ending}")


def describe_unlearnt(job: LabelJob) -> str:
    """Say that a model cannot learn labels, and how to get one that can."""
    return f"{job.model} cannot learn them: run `undrift adapt` with --updatable for that."


def finish_session(job: LabelJob, session: LabelSession, show_stage: ShowStage) -> list[str]:
    """Write the updated model and the predictions; return lines that say so."""
    if not session.answers:
        return ["No label was given, so nothing was written."]
    lines = []
    measured = session.measure()
    if measured and measured[0].after.n_rows >= session.least_measured:
        error = measured[0].after
        interval = f"{error.low:.1%} to {error.high:.1%}"
        lines.append(f"Error, measured on {count(error.n_rows, 'label')}: {error.error:.1%} ({interval}).")
    file = session.file
    lines.append(f"Wrote {describe_file(str(file.path))}: {count(len(session.answers), 'label')}.")
    if not session.can_learn:
        return [*lines, describe_unlearnt(job)]
    model = job.model.with_name(f"{job.model.stem.removesuffix('-labelled')}-labelled{job.model.suffix}")
    out, text = name_output(job, "predictions.csv"), file.columns
    update = UpdateJob(model=job.model, labels=file.path, out=model, text=text, domain=job.domain)
    run_update(update, show_stage, measures_error=False)  # the session has measured it
    again = PredictJob(
        model=model,
        input=job.input,
        out=out,
        as_fitted=True,
        reading=job.reading,
        text=text,
        domain=job.domain,
    )
    run_predict(again, show_stage)
    lines += [f"Wrote {describe_file(str(path))}." for path in (model, out)]
    return [*lines, "Next: predict new rows:", suggest("predict", job, model, "NEW.csv", "--out", "FILE")]
