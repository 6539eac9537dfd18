"""The methods that a plan may name, and the parameters that it may give them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from sklearn.decomposition import PCA

from undrift.method import MSDAClassifier

from .baselines import CODA, SCL, SDA

# the contract's names; other depths of msda are known too
METHODS = ("svm", "svm-tfidf", "pca", "scl", "coda", "sda", "msda-1", "msda-3", "msda-5", "undrift")


@dataclass(frozen=True)
class Ours:
    """`MSDAClassifier` with changes, with the true class shares of the predicted rows, or with a teacher."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    knows_shares: bool = False
    teacher: str = ""  # kind of stored scores that teach it


OURS: Mapping[str, Ours] = {
    "undrift": Ours(),
    "balanced": Ours({"border": "balanced"}),  # the least mean of the classes' errors
    "oracle": Ours(knows_shares=True),
    "uncentred": Ours({"center": False}),  # words kept their meaning
    "centred": Ours({"center": "domains"}),  # the mix of classes is the same
    "untrained": Ours({"center": False, "self_training": False}),  # layers alone
    "undrift+teacher": Ours(teacher="finetuned"),
}
ENCODERS = {"minilm-frozen": "frozen", "minilm-finetuned": "finetuned"}  # kinds of stored scores
WITH_LABELS = ("updated", "updated-asked")  # given so many target labels: `updated-5`


@dataclass(frozen=True)
class Peer:
    """A method of another package: its class, fixed settings, and those chosen without target labels.

    `n_components` are sizes of the dense rows, to choose from as in `grid`; none of them where the package
    takes sparse rows.
    """

    package: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    n_components: Sequence[int] = ()


PEERS: Mapping[str, Peer] = {
    "logistic-tfidf": Peer("sklearn", "logistic"),
    "logistic-components": Peer("sklearn", "logistic", n_components=(100,)),  # what others get
    "logistic-em": Peer("sklearn", "logistic-em"),
    "nb-features": Peer("sklearn", "naive-bayes"),
    "self-training": Peer("sklearn", "self-training"),
    "skada-coral": Peer("skada", "CORAL", grid={"reg": ("auto", 0.1)}, n_components=(100,)),
    "skada-subspace": Peer("skada", "SubspaceAlignment", {}, {"n_components": (20, 50, 100)}, (100,)),
    "skada-tca": Peer("skada", "TransferComponentAnalysis", {"n_components": 50}, n_components=(100,)),
    "skada-ot": Peer("skada", "OTMapping", n_components=(100,)),
    "skada-ot-entropic": Peer("skada", "EntropicOTMapping", grid={"reg_e": (0.01, 0.1)}, n_components=(100,)),
    "skada-ot-linear": Peer("skada", "LinearOTMapping", grid={"reg": (0.01, 0.1, 1.0)}, n_components=(100,)),
    "skada-jdot": Peer("skada", "JDOTClassifier", {"n_iter_max": 20}, n_components=(100,)),
    "skada-kliep": Peer("skada", "KLIEPReweight", {"gamma": [0.1, 1.0, 10.0]}, n_components=(100,)),
    "skada-kmm": Peer("skada", "KMMReweight", grid={"gamma": (0.1, 1.0)}, n_components=(100,)),
    "skada-density": Peer("skada", "DensityReweight", n_components=(100,)),
    "skada-discriminator": Peer("skada", "DiscriminatorReweight", n_components=(100,)),
    "skada-nearest": Peer("skada", "NearestNeighborReweight", n_components=(100,)),
    "skada-target-shift": Peer("skada", "MMDTarSReweight", grid={"gamma": (0.1, 1.0)}, n_components=(100,)),
    "adapt-coral": Peer("adapt.feature_based", "CORAL", {"lambda_": 1.0}, n_components=(100,)),
    "adapt-subspace": Peer("adapt.feature_based", "SA", {"n_components": 50}, n_components=(100,)),
    "adapt-kliep": Peer("adapt.instance_based", "KLIEP", {"kernel": "rbf", "gamma": 1.0}, {}, (100,)),
    "adapt-rulsif": Peer("adapt.instance_based", "RULSIF", {"kernel": "rbf", "gamma": 1.0}, {}, (100,)),
}  # fmt: skip
# methods that need the rows that they predict, unlabelled, while they learn
TRANSDUCTIVE = ("pca", "scl", "coda", "sda", "labels")

_ESTIMATORS = {"pca": PCA, "scl": SCL, "coda": CODA, "sda": SDA}
_SET_BY_RUNNER = {"random_state", "n_components:pca", "device:sda"}
_RUNNERS = ("device", "random_state", "verbose")  # not the plan's to decide


def sees_pair(method: str) -> bool:
    """Tell whether a method of ours sees the source's labelled rows and the target's rows, and no others."""
    return method.endswith("-pair")


def find_family(method: str) -> str:
    """Return the family of a method, whose members share representations; refuse an unknown name."""
    if re.fullmatch(r"msda-[1-9]\d?", method):
        return "msda"
    if method.removesuffix("-pair") in OURS:
        return "undrift"
    if method in (*METHODS, "source-only"):
        return method
    if method in PEERS:
        return "peers"
    if method in ENCODERS:
        return "encoders"
    if split_label_method(method)[0] in WITH_LABELS:
        return "labels"
    names = ["source-only", *OURS, *ENCODERS, *PEERS, *(f"{name}-5" for name in WITH_LABELS)]
    known = dict.fromkeys([*METHODS, *names])
    raise ValueError(
        f"method {method!r} is not known; known are {', '.join(known)}, and ours as `undrift-pair`"
    )


def is_inductive(method: str) -> bool:
    """Tell whether a method can do without the test rows, vocabulary and weights of terms included."""
    return not {find_family(method), method.removesuffix("-pair")} & set(TRANSDUCTIVE)


def takes_files(method: str) -> bool:
    """Tell whether a method can be run on two files and nothing else."""
    return method in PEERS or method in ("svm-tfidf", "undrift") or find_family(method) == "labels"


def split_label_method(method: str) -> tuple[str, int]:
    """Return the name and the number of target labels of a method that has some; else the name and -1."""
    name, _, number = method.rpartition("-")
    is_known = name in WITH_LABELS and number.isdecimal() and int(number) > 0
    return (name, int(number)) if is_known else (method, -1)


def list_parameters(method: str) -> set[str]:
    """Parameters that a plan may give to a method: those of its estimator that the runner does not set."""
    if method == "undrift":
        return set(MSDAClassifier().get_params(deep=False)) - set(_RUNNERS)
    if method not in _ESTIMATORS:
        return set()
    names = signature(_ESTIMATORS[method]).parameters
    return {name for name in names if not {name, f"{name}:{method}"} & _SET_BY_RUNNER}


def depends_on_method(method: str) -> bool:
    """Tell whether the numbers of a method change with the version of method `undrift`."""
    return find_family(method) in ("undrift", "labels")
