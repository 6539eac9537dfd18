"""Benchmark plans: a TOML file becomes a frozen, checked `Plan`."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .._core import ACTIVATIONS
from .._inputs import check_choice, check_count, check_noise, check_positive
from ..classifier import RULES
from ..errors import UndriftError
from .catalogue import COMPARED, INDUCTIVE, PEERS, find_family, list_parameters, resolve_undrift
from .corpora import LOADERS, CorpusSpec, check_options
from .keys import check_keys, check_like, check_list, check_plain, check_strings

KINDS = ("transfer", "distance", "regret")
C_GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # times the authors' 1 / mean |x|^2
LISTS = ("noise", "C", "methods", "depths", "rules", "targets", "tasks")  # settings that hold several values
FOR_REGRET = ("depths", "rules", "small_grid")  # settings that no other kind of plan looks at
FOR_UNDRIFT = ("changes",)  # settings that no other method looks at
FOR_SHARES = ("target_share", "max_target_rows")  # settings of plans that vary class shares


def _like(default: Any) -> Callable[[Any, str], Any]:
    return lambda value, name: check_like(value, default, name)


def _one_of(choices: Sequence[str]) -> Callable[[Any, str], Any]:
    return lambda value, name: check_choice(value, name, choices)


# what each value of a setting must be, or each of the values where it holds several
CHECKS: Mapping[str, Callable[[Any, str], Any]] = {
    "name": _like(""),
    **dict.fromkeys(("inductive", "tuned", "train_apart"), _like(False)),
    "target_share": _like(0.5),
    "c_rule": _one_of(("authors", "searched")),
    "activation": _one_of(ACTIVATIONS),
    "fit_on": _one_of(("all", "pair")),
    "rules": _one_of(tuple(RULES)),
    "noise": check_noise,
    "C": check_positive,
    **dict.fromkeys(
        ("max_features", "n_pivots", "n_folds", "n_rows", "max_target_rows", "depths"), check_count
    ),
}


class PlanError(UndriftError):
    """A plan that cannot be used: which file, which key, and what to do."""


@dataclass(frozen=True)
class Setting:
    """What may differ between the variants of a plan.

    Parameters
    ----------
    name : str
        Name of the variant.
    max_features : int, optional
        Number of columns, the most frequent first; by default those of the corpus.
    noise : tuple of float
        Noise levels, from which one is chosen for each source and depth by cross-validation there.
    c_rule : {"authors", "searched"}
        C = 1 / mean |x|^2, or the best in cross-validation of the multiples `C` of it.
    C : tuple of float
        What is searched with ``c_rule = "searched"``, in units of the authors' C; by default about
        three times more at each step, from a hundredth to ten.
    tuned : bool
        Whether baselines choose more than C by cross-validation on the source: PCA and SCL counts or tf-idf
        rows, SCL its scale (with negative weights kept), SDA its noise.
    activation : str
        Squashing function of mSDA's layers.
    fit_on : {"all", "pair"}
        Whether one stack serves all tasks or each task has one, of its two domains.
    n_pivots : int, optional
        Outputs of the first layer, from as many columns on (section 4); by default all of them.
    n_folds : int
        Folds of cross-validation.
    n_rows : int
        Rows of each domain that a distance is measured on.
    changes : mapping
        Parameters of method `undrift` that this variant changes, such as ``{self_training = false}``;
        `length` is that of its tf-idf rows.
    inductive : bool
        Whether methods must do without the test rows while they learn: vocabulary and weights of terms,
        layers, means of domains, pseudo-labels. Only some of the methods can.
    train_apart : bool
        Of method `undrift`, where it is inductive: whether the target's train rows, which were drawn like
        the test rows, are one target and its other rows another, so that each has class shares.
    target_share : float, optional
        Share of the second class in the target, which is then a sample of its labelled rows, train and test,
        drawn with the plan's seed. It takes the place of the domain: layers are learnt from it and all rows
        of the other domains, and all of it is predicted.
    max_target_rows : int
        Rows of that sample, at most.
    targets : tuple of str, optional
        Domains that are targets; by default all.
    tasks : tuple of str, optional
        Tasks, such as ``books->dvd``; by default all.
    corpus : CorpusSpec, optional
        Corpus of this variant; by default the plan's.
    methods : tuple of str, optional
        Those of the plan's methods that this variant runs; by default all.
    depths, rules : tuples
        Of a plan of regret: depths of the candidates, whose noise and C are the above, and the selection
        rules that score them.
    small_grid : mapping
        Of a plan of regret: values of `noise`, `depths` and `C` that make a smaller grid, for the table.
    """

    name: str = "main"
    max_features: int | None = None
    noise: tuple[float, ...] = (0.5, 0.6, 0.7, 0.8, 0.9)
    c_rule: str = "authors"
    C: tuple[float, ...] = C_GRID
    tuned: bool = False
    activation: str = "tanh"
    fit_on: str = "all"
    n_pivots: int | None = None
    n_folds: int = 5
    n_rows: int = 1000
    changes: Mapping[str, Any] = field(default_factory=dict)
    inductive: bool = False
    train_apart: bool = False
    target_share: float | None = None
    max_target_rows: int = 2500
    targets: tuple[str, ...] | None = None
    tasks: tuple[str, ...] | None = None
    corpus: CorpusSpec | None = None
    methods: tuple[str, ...] | None = None
    depths: tuple[int, ...] = (1, 2, 3, 4, 5)
    rules: tuple[str, ...] = tuple(RULES)
    small_grid: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, check in CHECKS.items():
            value = getattr(self, name)
            for each in value if name in LISTS else [value]:
                if each is not None:
                    check(each, name)
            if value == ():
                raise ValueError(f"{name} must hold at least one value")
        if self.n_folds < 2:
            raise ValueError("n_folds=1 must be at least 2")
        if self.train_apart and not self.inductive:
            raise ValueError(
                "train_apart needs inductive = true: test rows that are seen are a target anyway"
            )
        if self.target_share is not None:
            if not 0 < self.target_share < 1:
                raise ValueError(f"target_share={self.target_share!r} must lie between 0 and 1")
            if self.inductive:
                raise ValueError("inductive does not go with target_share, whose rows are all seen")
        check_keys(self.changes, list_parameters("undrift") if self.changes else set(), "changes.")
        for name, value in self.changes.items():
            check_plain(value, f"changes.{name}")
        check_keys(self.small_grid, {"noise", "depths", "C"}, "small_grid.")
        for name, values in self.small_grid.items():
            unknown = set(check_list(values, f"small_grid.{name}")) - set(getattr(self, name))
            if unknown:
                raise ValueError(f"small_grid.{name} holds {min(unknown)}, which is not in {name}")

    @property
    def Cs(self) -> tuple[float, ...]:
        """Candidates of C, in units of the authors' rule."""
        return self.C if self.c_rule == "searched" else (1.0,)


@dataclass(frozen=True)
class Plan:
    """What to run: a corpus, the methods, and the settings to run them under.

    Parameters
    ----------
    name : str
        The file's name, without its ending.
    corpus : CorpusSpec
    methods : tuple of str
    variants : tuple of Setting
    kind : {"transfer", "distance", "regret"}
    baseline_variant : str, optional
        Variant whose in-domain errors serve all variants (those of another corpus: the first of these); by
        default each variant has its errors measured.
    parameters : mapping of str to mapping
        Parameters of the methods' estimators, such as ``parameters.sda.n_epochs``.
    seed : int
    is_trial : bool
        Whether it was made smaller, so that its results are not those of the plan.
    """

    name: str
    corpus: CorpusSpec
    methods: tuple[str, ...]
    variants: tuple[Setting, ...] = (Setting(),)
    kind: str = "transfer"
    baseline_variant: str | None = None
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    seed: int = 0
    is_trial: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 2**32:
            raise ValueError(f"seed={self.seed!r} must be a whole number, at least 0 and below 2^32")

    def digest(self, variant: Setting, method: str) -> str:
        """Fingerprint of all that decides the numbers of a method, so that results do not get mixed.

        With method `undrift` that is what the method is, its defaults too: they may change with a version.
        """
        ignored = {"methods", "small_grid", "targets", "tasks", "corpus"}
        ignored |= {*(() if self.kind == "regret" else FOR_REGRET)}
        ignored |= {name for name in ("tuned", "train_apart") if not getattr(variant, name)}
        ignored |= {*(() if variant.target_share else FOR_SHARES)}
        setting = {key: value for key, value in asdict(variant).items() if key not in ignored}
        parameters = {method: dict(table) for method, table in self.parameters.items()}
        decisive = [asdict(self.corpus_of(variant)), setting, self.kind, self.seed, parameters]
        if (family := find_family(method)) in ("undrift", "labels", "source-only"):
            values = resolve_undrift({**self.parameters.get("undrift", {}), **variant.changes})
            used = ("length", "C") if family == "source-only" else values
            decisive.append({name: values[name] for name in used})
        decisive += [[method, dict(COMPARED[method])]] if method in COMPARED else []
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
        return self if seed is None else replace(self, seed=seed)

    def smaller(self, max_rows: int | None, max_features: int | None) -> Plan:
        """Return the plan with fewer rows and columns, for a trial."""
        corpus, variants = self.corpus, self.variants
        if max_rows is not None:
            corpus = replace(corpus, max_rows=max_rows)
            fewer = [v.corpus and replace(v.corpus, max_rows=max_rows) for v in variants]
            variants = tuple(replace(v, corpus=corpus) for v, corpus in zip(variants, fewer, strict=True))
        if max_features is not None:
            variants = tuple(
                replace(v, max_features=min(v.max_features or max_features, max_features)) for v in variants
            )
        is_trial = self.is_trial or max_rows is not None or max_features is not None
        return replace(self, corpus=corpus, variants=variants, is_trial=is_trial)


def find_plan_file(name: str | Path) -> Path:
    """Return the file of a plan, given by its path or by its name if it comes with undrift (``small``)."""
    path, here = Path(name), Path(__file__).resolve()
    if path.exists() or path.suffix or len(path.parts) > 1:
        return path
    folders = [here.parent / "plans", here.parents[3] / "paper"]  # of a wheel, of a checkout
    files = {file.stem: file for folder in folders for file in folder.glob("*.toml")}
    if str(name) not in files:
        raise FileNotFoundError(f"no plan {name}: it is neither a file nor one of {', '.join(sorted(files))}")
    return files[str(name)]


def load_plan(path: str | Path) -> Plan:
    """Read and check a plan, given by its path or by the name of one that comes with undrift."""
    path = find_plan_file(path)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"{path} is not a TOML file: {error}") from None
    try:
        return parse_plan(path.stem, table)
    except (TypeError, ValueError) as error:
        raise PlanError(f"{path}: {error}") from None


def parse_plan(name: str, table: Mapping[str, Any]) -> Plan:
    """Check the contents of a plan; `name` is its file's, without the ending."""
    check_keys(table, {*(f.name for f in fields(Plan)), *_setting_names()} - {"name", "is_trial"}, "")
    for key in ("corpus", "methods"):
        if key not in table:
            raise ValueError(f"{key} is missing")
    kind = check_choice(table.get("kind", "transfer"), "kind", KINDS)
    methods = check_strings(table["methods"], "methods")
    for method in methods:
        find_family(method)
    parameters = _parse_parameters(table.get("parameters", {}), methods)
    common = {key: table[key] for key in _setting_names() - {"methods", "corpus"} if key in table}
    variants = _parse_variants(table.get("variants", [{}]), common, methods)
    _check_kind(kind, {*common, *chain(*table.get("variants", []))}, methods, variants)
    baseline = table.get("baseline_variant")
    if baseline is not None and baseline not in [v.name for v in variants]:
        raise ValueError(f"baseline_variant={baseline!r} is none of the variants")
    corpus, given = _parse_corpus(table["corpus"]), MappingProxyType(parameters)
    return Plan(name, corpus, methods, variants, kind, baseline, given, table.get("seed", 0))


def _check_kind(
    kind: str, given: AbstractSet[str], methods: Sequence[str], variants: Sequence[Setting]
) -> None:
    """Refuse what a plan of this kind, or with these methods, would not look at."""
    if kind == "regret" and methods != ("undrift",):
        raise ValueError('methods: kind="regret" is about method undrift: give methods = ["undrift"]')
    if kind == "regret" and any(variant.changes.get("center") == "classes" for variant in variants):
        raise ValueError('changes.center: kind="regret" centres domains: leave it out, or give false')
    if kind == "distance":
        for method in methods:
            if not method.startswith("msda-"):
                raise ValueError(f'methods: kind="distance" is about msda-1, msda-5 and so on, not {method}')
        for variant in variants:
            if len(variant.noise) > 1:
                raise ValueError('noise: kind="distance" takes one level, such as noise = [0.7]')
    for key in FOR_UNDRIFT:
        if key in given and not any(find_family(method) == "undrift" for method in methods):
            raise ValueError(f"{key} is about method undrift, which is not among the plan's methods")
    if kind != "transfer" and {*FOR_SHARES, "targets"} & given:
        raise ValueError('target_share, max_target_rows and targets need kind="transfer"')
    for variant in variants:
        for method in variant.methods or methods:
            if variant.inductive and method not in INDUCTIVE:
                raise ValueError(
                    f"inductive: method {method} learns from the test rows; give variant "
                    f"{variant.name!r} methods without it"
                )


def _parse_corpus(table: Any) -> CorpusSpec:
    if not isinstance(table, Mapping):
        raise ValueError("corpus must be a table, such as [corpus] with loader = 'amazon-bow'")
    check_keys(table, {f.name for f in fields(CorpusSpec)}, "corpus.")
    check_choice(table.get("loader"), "corpus.loader", tuple(LOADERS))
    check_like(table.get("folder", ""), "", "corpus.folder")
    check_options(table["loader"], table.get("options", {}))
    try:
        return CorpusSpec(**table)
    except (TypeError, ValueError) as error:  # which begins with the key
        raise ValueError(f"corpus.{error}") from None


def _parse_variants(tables: Any, common: Mapping[str, Any], methods: Sequence[str]) -> tuple[Setting, ...]:
    if not isinstance(tables, list) or not tables:
        raise ValueError("variants must be a list of tables, [[variants]]")
    settings = []
    for table in tables:
        check_keys(table, {"name", *_setting_names()}, "variants.")
        if len(tables) > 1 and "name" not in table:
            raise ValueError("each of several variants needs a name: variants.name is missing")
        try:
            settings.append(_parse_setting({**common, **table}, methods))
        except (TypeError, ValueError) as error:
            where = f"variant {table['name']!r}: " if "name" in table else ""
            raise ValueError(f"{where}{error}") from None
    names = [setting.name for setting in settings]
    if len(set(names)) < len(names):
        raise ValueError(f"variants share a name: {', '.join(names)}")
    return tuple(settings)


def _parse_setting(values: Mapping[str, Any], methods: Sequence[str]) -> Setting:
    lists = {key: tuple(check_list(values[key], key)) for key in LISTS if key in values}
    for method in check_strings(values["methods"], "variants.methods") if "methods" in values else ():
        if method not in methods:
            raise ValueError(f"variants.methods: {method!r} is not among the plan's methods")
    for key in {"targets", "tasks"} & values.keys():
        check_strings(values[key], key)
    corpus = {"corpus": _parse_corpus(values["corpus"])} if "corpus" in values else {}
    return Setting(**{**values, **lists, **corpus})


def _parse_parameters(value: Any, methods: Sequence[str]) -> dict[str, Any]:
    """Tables of parameters, for methods of the plan that have such parameters."""
    if not isinstance(value, Mapping) or not all(isinstance(table, Mapping) for table in value.values()):
        raise ValueError("parameters must hold one table for each method, such as [parameters.sda]")
    for method, table in value.items():
        find_family(method)
        if method not in methods:
            raise ValueError(f"parameters.{method}: {method} is not among the plan's methods")
        check_keys(table, list_parameters(method), f"parameters.{method}.")
        for name, parameter in table.items():
            check_plain(parameter, f"parameters.{method}.{name}")
    return {method: MappingProxyType(dict(table)) for method, table in value.items()}


def _setting_names() -> set[str]:
    return {f.name for f in fields(Setting)} - {"name"}
