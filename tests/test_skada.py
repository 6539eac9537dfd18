"""undrift in skada's pipelines and scorers, with skada itself."""

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

from undrift import MSDA, MSDAClassifier, MSDARegressor, load_model, save_model
from undrift.skada import SkadaClassifier, SkadaRegressor

pytestmark = pytest.mark.filterwarnings("ignore")  # skada's
rng = np.random.default_rng(0)
N = 80
LABELS = np.tile([0, 1], N)
DOMAINS = np.repeat([1, -2], N)
# two columns say the label in both domains; in the target all columns have moved
ROWS = rng.normal(size=(2 * N, 8)) + 2 * LABELS[:, None] * np.eye(8)[0] + (DOMAINS < 0)[:, None] * 0.7
SOURCE, TARGET = ROWS[:N], ROWS[N:]
MASKED = np.where(DOMAINS < 0, -1, LABELS)
SCORERS = {
    "SupervisedScorer", "ImportanceWeightedScorer", "PredictionEntropyScorer", "SoftNeighborhoodDensity",
    "DeepEmbeddedValidation", "CircularValidation", "MixValScorer", "MaNoScorer",
}  # fmt: skip


@pytest.fixture
def skada():
    """The package, which enables metadata routing for the whole process when it is imported."""
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import skada

        yield skada


@pytest.fixture
def split(skada):
    return skada.model_selection.SourceTargetShuffleSplit(n_splits=1, test_size=0.4, random_state=0)


def test_a_pipeline_predicts_what_the_classifier_does(skada):
    pipeline = skada.make_da_pipeline(SkadaClassifier(2, random_state=0)).fit(
        ROWS, LABELS.copy(), sample_domain=DOMAINS
    )
    classifier = MSDAClassifier(2, random_state=0).fit(SOURCE, LABELS[:N], TARGET)
    for method in ("predict", "predict_proba", "decision_function"):
        theirs = getattr(pipeline, method)(TARGET, sample_domain=DOMAINS[N:])
        np.testing.assert_allclose(theirs, getattr(classifier, method)(TARGET), atol=1e-5)
        of_sources = getattr(pipeline, method)(SOURCE, sample_domain=DOMAINS[:N], allow_source=True)
        np.testing.assert_allclose(
            of_sources, getattr(classifier, method)(SOURCE, sample_domain=0), atol=1e-5
        )
    score = pipeline.score(TARGET, LABELS[N:], sample_domain=DOMAINS[N:])
    assert score == classifier.score(TARGET, LABELS[N:]) > 0.7


def test_all_of_skadas_scorers_are_tried(skada):
    base = skada.metrics._BaseDomainAwareScorer
    classes = [value for value in vars(skada.metrics).values() if isinstance(value, type)]
    assert {value.__name__ for value in classes if issubclass(value, base)} - {base.__name__} == SCORERS


@pytest.mark.parametrize("name", sorted(SCORERS))
def test_scorers_score_it(skada, split, name):
    labels = {"target_labels": LABELS} if name == "SupervisedScorer" else {}
    result = cross_validate(
        skada.make_da_pipeline(SkadaClassifier(2)), ROWS, MASKED.copy(), cv=split, error_score="raise",
        scoring=getattr(skada.metrics, name)(), params={"sample_domain": DOMAINS, **labels},
    )  # fmt: skip
    assert np.isfinite(result["test_score"]).all()
    if labels:
        assert result["test_score"][0] > 0.6


def test_a_search_chooses_by_a_scorer(skada, split):
    search = GridSearchCV(
        skada.make_da_pipeline(SkadaClassifier(1)), {"skadaclassifier__noise": [0.1, 0.5]},
        cv=split, scoring=skada.metrics.CircularValidation(),
    ).fit(ROWS, MASKED.copy(), sample_domain=DOMAINS)  # fmt: skip
    noise = search.best_params_["skadaclassifier__noise"]
    assert search.best_estimator_[-1].base_estimator_.best_params_["noise"] == noise


def test_weights_of_a_step_before_it_are_used(skada):
    pipeline = skada.make_da_pipeline(
        skada.DensityReweightAdapter(), SkadaClassifier(1, center=False, random_state=0)
    )
    pipeline.fit(ROWS, LABELS.copy(), sample_domain=DOMAINS)
    weights = pipeline[0].base_estimator_.compute_weights(ROWS, sample_domain=DOMAINS)[:N]
    expected = MSDAClassifier(1, center=False, random_state=0).fit(
        SOURCE, LABELS[:N], TARGET, sample_weight=weights
    )
    np.testing.assert_allclose(
        pipeline.decision_function(TARGET, sample_domain=DOMAINS[N:]),
        expected.decision_function(TARGET),
        atol=1e-5,
    )


def test_the_representation_is_learnt_from_all_rows(skada):
    pipeline = skada.make_da_pipeline(MSDA(2), LogisticRegression())
    pipeline.fit(ROWS, LABELS.copy(), sample_domain=DOMAINS)
    for theirs, ours in zip(pipeline[0].base_estimator_.layers_, MSDA(2).fit(ROWS).layers_, strict=True):
        np.testing.assert_allclose(theirs.coef, ours.coef)
    assert pipeline.score(TARGET, LABELS[N:], sample_domain=DOMAINS[N:]) > 0.6


def test_rows_of_a_new_target_are_placed_where_the_target_is():
    model = SkadaClassifier(1).fit(ROWS, MASKED, sample_domain=DOMAINS)
    expected = model.decision_function(TARGET, sample_domain=-2)
    assert not np.allclose(expected, model.decision_function(TARGET, sample_domain=1))
    for domain in (None, -1, np.full(N, -7)):
        np.testing.assert_array_equal(model.decision_function(TARGET, sample_domain=domain), expected)
    mixed = np.where(np.arange(N) < 5, -7, 1)
    np.testing.assert_array_equal(model.decision_function(TARGET, sample_domain=mixed)[:5], expected[:5])
    with pytest.raises(ValueError, match=r"holds \[3\]"):
        model.predict(TARGET, sample_domain=3)
    with pytest.raises(ValueError, match=f"one integer for each of the {N} rows"):
        model.predict(TARGET, sample_domain=[-2, -2])


def test_rows_without_a_domain_are_placed_between_several_targets():
    domains = np.where(np.arange(2 * N) >= N + 20, -3, DOMAINS)
    model = SkadaClassifier(1).fit(ROWS, MASKED, sample_domain=domains)
    first, second = (model.decision_function(TARGET, sample_domain=number) for number in (-2, -3))
    mean = (20 * first + 60 * second) / N
    assert not np.allclose(first, second)
    np.testing.assert_allclose(model.decision_function(TARGET), mean, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(TARGET, sample_domain=-1), mean, atol=1e-6)


def test_the_regressor(skada, split, tmp_path):
    stars = LABELS + 0.1 * np.random.default_rng(1).normal(size=2 * N)
    masked = np.where(DOMAINS < 0, np.nan, stars)
    pipeline = skada.make_da_pipeline(SkadaRegressor(1, random_state=0)).fit(
        ROWS, masked.copy(), sample_domain=DOMAINS
    )
    expected = MSDARegressor(1, random_state=0).fit(SOURCE, stars[:N], TARGET).predict(TARGET)
    np.testing.assert_allclose(pipeline.predict(TARGET, sample_domain=DOMAINS[N:]), expected, atol=1e-4)
    result = cross_validate(
        pipeline, ROWS, masked.copy(), cv=split, params={"sample_domain": DOMAINS}, error_score="raise",
        scoring=skada.metrics.CircularValidation(lambda y, predicted: -np.mean((y - predicted) ** 2)),
    )  # fmt: skip
    assert -1 < result["test_score"][0] < 0


@pytest.mark.parametrize("estimator", [SkadaClassifier(1), SkadaRegressor(1)])
def test_saved_and_loaded(estimator, tmp_path):
    y = np.where(DOMAINS < 0, np.nan, LABELS)
    model = estimator.fit(ROWS, y, sample_domain=DOMAINS)
    save_model(model, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path / "model.safetensors")
    assert type(loaded) is type(estimator)
    np.testing.assert_array_equal(loaded.predict(TARGET, sample_domain=-5), model.predict(TARGET))
