"""Benchmark plans: a TOML file becomes a frozen, checked `Plan`."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Interval, Len, Lt
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from undrift.errors import UndriftError

from .catalogue import PEERS, find_family, is_inductive, list_parameters, takes_files
from .corpora import LOADERS

C_MULTIPLES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the authors' rule, to choose from

Count = Annotated[int, Ge(1)]
Share = Annotated[float, Gt(0), Lt(1)]
Noise = Annotated[float, Ge(0), Lt(1)]
Names = Annotated[tuple[str, ...], Len(1)]
Value = bool | int | float | str | list[bool | int | float | str]  # of a parameter
STRICT = ConfigDict(strict=True, extra="forbid")


class PlanError(UndriftError):
    """A plan that cannot be used: which file, which key, and what to do."""


def _check_names(table: Mapping[str, Any], known: set[str], where: str) -> None:
    """Refuse a key that is not known, and suggest the one that was meant."""
    for key in table:
        if key not in known:
            raise ValueError(f"{where}.{key} is not known; {_suggest(key, known)}")


def _suggest(name: str, known: set[str]) -> str:
    close = get_close_matches(name, known, 1)
    listed = f"known are {', '.join(sorted(known))}" if known else "nothing can be set here"
    return f"did you mean {close[0]}?" if close else listed


@dataclass(frozen=True, config=STRICT)
class CorpusSpec:
    """Where the rows come from: a loader of `LOADERS`, which names the folder too."""

    loader: str
    max_features: Count = 5000  # size of the vocabulary of texts; columns kept of counted files
    max_rows: Count | None = None  # of each part of each domain, evenly spaced, for trials; by default all

    def __post_init__(self) -> None:
        if self.loader not in LOADERS:
            raise ValueError(f"loader={self.loader!r} is not known; choose one of {', '.join(LOADERS)}")


@dataclass(frozen=True, config=STRICT)
class Setting:
    """What may differ between the variants of a plan."""

    name: str = "main"
    max_features: Count | None = None  # columns, the most frequent first; by default those of the corpus
    # levels, from which one is chosen for each source and depth by cross-validation there
    noise: Annotated[tuple[Noise, ...], Len(1)] = (0.5, 0.6, 0.7, 0.8, 0.9)
    # C = 1 / mean |x|^2, or the best in cross-validation of the multiples `C_MULTIPLES` of it
    c_rule: Literal["authors", "searched"] = "authors"
    # whether baselines choose more than C by cross-validation on the source: PCA and SCL counts or tf-idf
    # rows, SCL its scale (with negative weights kept), SDA its noise
    tuned: bool = False
    activation: Literal["tanh", "sigmoid", "relu", "identity"] = "tanh"
    # "pair": vocabulary (with `max_features`), weights of terms and layers are those of a task's two domains.
    # "files": likewise, of the source's train rows and at most `max_target_rows` labelled rows of the target,
    # all of which are predicted; tasks are spread over processes
    fit_on: Literal["all", "pair", "files"] = "all"
    n_pivots: Count | None = None  # outputs of the first layer, from as many columns on (section 4)
    inductive: bool = False  # whether methods do without the test rows while they learn; only some can
    # share of the second class in the target, which is then a sample of its labelled rows, train and test,
    # drawn with the plan's seed, at most `max_target_rows`; it takes the place of the domain, and all of it
    # is predicted
    target_share: Share | None = None
    max_target_rows: Count = 2500
    targets: Names | None = None  # domains that are targets; by default all
    tasks: Names | None = None  # such as ``books->dvd``; by default all
    corpus: CorpusSpec | None = None  # of this variant; by default the plan's
    methods: Names | None = None  # those of the plan's that this variant runs; by default all

    def __post_init__(self) -> None:
        if self.target_share is not None and self.inductive:
            raise ValueError("inductive does not go with target_share, whose rows are all seen")

    @property
    def Cs(self) -> tuple[float, ...]:
        """Candidates of C, in units of the authors' rule."""
        return C_MULTIPLES if self.c_rule == "searched" else (1.0,)


@dataclass(frozen=True, config=STRICT)
class Plan:
    """What to run: a corpus, the methods, and the settings to run them under."""

    name: str
    corpus: CorpusSpec
    methods: Names
    variants: Annotated[tuple[Setting, ...], Len(1)] = field(default_factory=lambda: (Setting(),))
    kind: Literal["transfer", "distance"] = "transfer"
    # whose in-domain errors serve all variants (those of another corpus: the first of these); by default
    # each variant has its errors measured
    baseline_variant: str | None = None
    parameters: dict[str, dict[str, Value]] = field(default_factory=dict)  # as ``parameters.sda.n_epochs``
    seed: Annotated[int, Interval(ge=0, lt=2**32)] = 0
    is_trial: bool = False  # made smaller, so that its results are not those of the plan

    def __post_init__(self) -> None:
        for method in self.methods:
            find_family(method)
        for method, table in self.parameters.items():
            if method not in self.methods:
                raise ValueError(f"parameters.{method}: {method} is not among the plan's methods")
            _check_names(table, list_parameters(method), f"parameters.{method}")
        names = [variant.name for variant in self.variants]
        for kind, given in (("variants", names), ("methods", self.methods)):
            if len(set(given)) < len(given):
                raise ValueError(f"{kind} has a name twice: {', '.join(given)}")
        if self.baseline_variant not in (None, *names):
            raise ValueError(f"baseline_variant={self.baseline_variant!r} is none of the variants")
        for variant in self.variants:
            _check_methods(variant, self.methods)
            if self.kind == "distance" and len(variant.noise) > 1:
                raise ValueError('noise: kind="distance" takes one level, such as noise = [0.7]')
        if self.kind == "distance" and not all(method.startswith("msda-") for method in self.methods):
            raise ValueError('methods: kind="distance" is about msda-1, msda-5 and so on')

    def digest(self, variant: Setting, method: str) -> str:
        """Fingerprint of all that the plan says of a method's numbers, so that results do not get mixed.

        Values that are the defaults do not count: a new key with a default leaves all records valid. The
        version of method `undrift` is a field of its own in the records.
        """
        setting = _changed_values(variant, Setting())
        for name in ("methods", "targets", "tasks", "corpus"):
            setting.pop(name, None)
        corpus = {"loader": self.corpus_of(variant).loader}
        corpus |= _changed_values(self.corpus_of(variant), CorpusSpec(corpus["loader"]))
        decisive: list[Any] = [corpus, setting, self.kind, self.seed, self.parameters]
        decisive += [[method, asdict(PEERS[method])]] if method in PEERS else []
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]

    def corpus_of(self, variant: Setting) -> CorpusSpec:
        """Corpus of a variant."""
        return variant.corpus or self.corpus

    def baseline_of(self, variant: Setting) -> Setting:
        """Variant whose in-domain errors serve this one."""
        if self.baseline_variant is None:
            return variant
        alike = [each for each in self.variants if self.corpus_of(each) == self.corpus_of(variant)]
        return next((each for each in alike if each.name == self.baseline_variant), alike[0])

    def seeded(self, seed: int | None) -> Plan:
        """Return the plan with another seed, if one is given: its results stand beside those of others."""
        return self if seed is None else _checked(replace, self, seed=seed)

    def smaller(self, max_rows: int | None, max_features: int | None) -> Plan:
        """Return the plan with fewer rows and columns, for a trial."""
        corpus, variants = self.corpus, self.variants
        if max_rows is not None:
            corpus = _checked(replace, corpus, max_rows=max_rows)
            fewer = [v.corpus and replace(v.corpus, max_rows=max_rows) for v in variants]
            variants = tuple(replace(v, corpus=corpus) for v, corpus in zip(variants, fewer, strict=True))
        if max_features is not None:
            variants = tuple(
                _checked(replace, v, max_features=min(v.max_features or max_features, max_features))
                for v in variants
            )
        is_trial = self.is_trial or max_rows is not None or max_features is not None
        return replace(self, corpus=corpus, variants=variants, is_trial=is_trial)


def _changed_values(settings: Any, defaults: Any) -> dict[str, Any]:
    """Return the values of a dataclass that are not the defaults, by name."""
    return {name: value for name, value in asdict(settings).items() if value != getattr(defaults, name)}


def _check_methods(variant: Setting, methods: tuple[str, ...]) -> None:
    """Refuse methods that the plan does not have, or that cannot do what the variant says."""
    for method in variant.methods or methods:
        if method not in methods:
            raise ValueError(f"variant {variant.name!r}: {method!r} is not among the plan's methods")
        if variant.inductive and not is_inductive(method):
            raise ValueError(
                f"inductive: method {method} learns from the test rows; give variant {variant.name!r} "
                "methods without it"
            )
        if variant.fit_on == "files" and not takes_files(method):
            raise ValueError(f'fit_on = "files" does not go with method {method}')
        if variant.fit_on != "files" and find_family(method) == "labels":
            raise ValueError(f'method {method} needs fit_on = "files" in variant {variant.name!r}')


def _checked(make: Any, *arguments: Any, **changes: Any) -> Any:
    """Call a function that makes a checked value; what is wrong with it is told in one line."""
    try:
        return make(*arguments, **changes)
    except ValidationError as error:
        raise ValueError(describe_error(error)) from None


def check_table(kind: Any, table: Mapping[str, Any]) -> Any:
    """Make a checked dataclass of a table of a TOML file."""
    text = json.dumps(table, default=str)  # JSON has lists for tuples, and no dates
    return _checked(TypeAdapter(kind).validate_json, text)


def describe_error(error: ValidationError) -> str:
    """Say in one line what is wrong first: the key, the value, and what it must be."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if not isinstance(part, int))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "unexpected_keyword_argument":
        known = {each.name for kind in (Plan, Setting, CorpusSpec) for each in fields(kind)}
        return f"{where} is not known; {_suggest(str(first['loc'][-1]), known)}"
    if first["type"] in ("missing", "missing_argument"):
        return f"{where} is missing"
    if first["type"] == "value_error":
        return f"{where}: {message}" if where else message
    return f"{where}={first['input']!r}: {message[0].lower()}{message[1:]}"


def find_plan_file(name: str | Path) -> Path:
    """Return the file of a plan, given by its path or by its name if it comes with the lab (``small``)."""
    path, here = Path(name), Path(__file__).resolve()
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    folders = [here.parent / "plans", here.parents[1] / "plans"]  # of a wheel, of a checkout
    files = {file.stem: file for folder in folders for file in folder.glob("*.toml")}
    if str(name) not in files:
        raise FileNotFoundError(f"no plan {name}: it is neither a file nor one of {', '.join(sorted(files))}")
    return files[str(name)]


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"{path} is not a TOML file: {error}") from None


def load_plan(path: str | Path) -> Plan:
    """Read and check a plan, given by its path or by the name of one that comes with the lab."""
    path = find_plan_file(path)
    try:
        return parse_plan(path.stem, read_toml(path))
    except ValueError as error:
        raise PlanError(f"{path}: {error}") from None


def parse_plan(name: str, table: Mapping[str, Any]) -> Plan:
    """Check the contents of a plan; `name` is its file's, without the ending.

    Keys of a variant that stand at the top serve all variants.
    """
    shared = {each.name for each in fields(Setting)} - {"name", "methods", "corpus"}
    common = {key: value for key, value in table.items() if key in shared}
    rest = {key: value for key, value in table.items() if key not in shared}
    variants = rest.get("variants", [{}])
    if isinstance(variants, list) and all(isinstance(each, dict) for each in variants):
        rest["variants"] = [{**common, **each} for each in variants]
    return check_table(Plan, {**rest, "name": name})
