"""The methods that a plan may name, and the parameters that it may give them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from inspect import signature
from typing import Any

from sklearn.decomposition import PCA

from ..baselines import CODA, SCL, SDA
from ..classifier import SelfTraining
from ..text import TFIDF_LENGTH, text_classifier

# the contract's names; other depths of msda are known too
METHODS = ("svm", "svm-tfidf", "pca", "scl", "coda", "sda", "msda-1", "msda-3", "msda-5", "undrift")
# methods that `undrift` is compared with where class shares differ: what each changes of it;
# those named -pair see the labelled rows of the source and the target's rows, and no other domain
_LAYERS_ALONE = {"center": False, "self_training": False, "fallback": False}
COMPARED: Mapping[str, Mapping[str, Any]] = {
    "source-only": {},  # least squares on tf-idf rows of the source: no layers, and no part for the target
    "uncentred": _LAYERS_ALONE,
    "centred": {"center": "domains"},
    "oracle": {},  # is given the true class shares of the target
    "balanced": {"border": "balanced"},  # predicts for least mean of the classes' errors
    "undrift-pair": {},
    "balanced-pair": {"border": "balanced"},
    "uncentred-pair": _LAYERS_ALONE,
    "uncentred-em-pair": _LAYERS_ALONE,  # class shares of the predicted rows by EM on its probabilities
}
# methods that are given so many target labels: `labels-50`
WITH_LABELS = (
    "labels", "asked", "updated", "updated-asked", "second-source", "augmented", "target-only",
)  # fmt: skip


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
    "wordllama": Peer("wordllama", "embeddings"),
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
# methods that can do without the test rows while they learn, vocabulary and weights of terms included
INDUCTIVE = (
    "svm",
    "svm-tfidf",
    "undrift",
    *(name for name in COMPARED if name != "uncentred-em-pair"),
    *PEERS,
)
LASTING = ("sda",)  # methods whose representations take too long to be learnt again when a run is resumed

_ESTIMATORS = {"pca": PCA, "scl": SCL, "coda": CODA, "sda": SDA}
_SET_BY_RUNNER = {"random_state", "n_components:pca", "device:sda", "callback:sda"}
_RUNNERS = ("device", "memory_budget", "random_state", "verbose")  # not the plan's to decide


def find_family(method: str) -> str:
    """Return the family of a method, whose members share representations; refuse an unknown name."""
    if re.fullmatch(r"msda-[1-9]\d?", method):
        return "msda"
    if method in COMPARED:
        return method if method == "source-only" else "undrift"
    if method in PEERS:
        return "peers"
    if split_label_method(method)[0] in WITH_LABELS:
        return "labels"
    if method in METHODS:
        return method
    names = [*METHODS, *COMPARED, *PEERS, *(f"{name}-50" for name in WITH_LABELS)]
    raise ValueError(f"method {method!r} is not known; known are {', '.join(names)}")


def split_label_method(method: str) -> tuple[str, int]:
    """Return the name and the number of target labels of a method that has some; else the name and -1."""
    name, _, number = method.rpartition("-")
    is_known = name in WITH_LABELS and number.isdecimal() and (number != "0" or name == "labels")
    return (name, int(number)) if is_known else (method, -1)


def list_parameters(method: str) -> set[str]:
    """Parameters that a plan may give to a method: those of its estimator that the runner does not set."""
    if method == "undrift":
        return {*text_classifier().get_params(deep=False), "length"} - set(_RUNNERS)
    if method not in _ESTIMATORS:
        return set()
    names = signature(_ESTIMATORS[method]).parameters
    return {name for name in names if not {name, f"{name}:{method}"} & _SET_BY_RUNNER}


def resolve_undrift(changes: Mapping[str, Any]) -> dict[str, Any]:
    """All that makes method `undrift` what it is: `changes`, and the defaults of everything else."""
    changes = {"length": TFIDF_LENGTH, **changes}
    length = changes.pop("length")
    values = text_classifier(**changes).get_params(deep=False)
    if values["self_training"] is True:
        values["self_training"] = asdict(SelfTraining())
    return {"length": length, **{name: values[name] for name in sorted(set(values) - set(_RUNNERS))}}
