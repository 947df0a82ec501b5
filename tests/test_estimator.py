"""The scikit-learn meta-estimator: its conventions, and that held-out data stay held out."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import surelist as sl

X, y = make_classification(4_000, 8, weights=[0.8], random_state=0)
TARGET = sl.Expected(5, 100)

NOT_ARGMAX = "predict says who is on the shortlist, which is not the argmax of the model's own scores"
EXPECTED_FAILURES = {
    "check_classifiers_train": NOT_ARGMAX,
    "check_classifiers_classes": NOT_ARGMAX,
    "check_classifiers_one_label_sample_weights": NOT_ARGMAX,
    "check_fit2d_1feature": "ten rows with random labels: a target may not be certifiable, and then it is refused",
    "check_methods_subset_invariance": "the threshold is a calibration row's own score; the model's scores of a "
    "batch and of single rows differ in the last bit, which moves exactly that row",
}


def make(**options):
    return sl.ShortlistClassifier(LogisticRegression(), target=TARGET, random_state=0, **options)


@pytest.mark.filterwarnings("ignore")  # scikit-learn's own checks feed NaN and inf on purpose
def test_check_estimator():
    small = sl.ShortlistClassifier(
        LogisticRegression(), target=sl.Expected(0.1, 100), alpha=0.5, random_state=0
    )
    results = check_estimator(small, expected_failed_checks=EXPECTED_FAILURES, on_fail=None, on_skip=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40


def test_predict_is_the_shortlist():
    model = make().fit(X, y)
    listed = model.shortlist(X)
    scores = model.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(listed, scores >= model.policy_.threshold)
    np.testing.assert_array_equal(model.predict(X), listed.astype(int))
    assert model.policy_.cutoffs[0].rows == 2_000
    assert "5 qualified candidates" in model.policy_.promise


def test_rows_used_for_fitting_are_not_used_for_calibration():
    """A tree that memorises its training rows: in-sample calibration would be far off."""

    class Recorder(DecisionTreeClassifier):
        def fit(self, X, y, sample_weight=None):
            self.seen_ = {row.tobytes() for row in np.ascontiguousarray(X)}
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            self.scored_ = {row.tobytes() for row in np.ascontiguousarray(X)}
            return super().predict_proba(X)

    model = sl.ShortlistClassifier(Recorder(max_depth=3), target=sl.Expected(1, 100), random_state=0).fit(
        X, y
    )
    assert len(model.estimator_.seen_) == len(model.estimator_.scored_) == 2_000
    assert not model.estimator_.seen_ & model.estimator_.scored_


def test_the_split_is_never_stratified():
    """The number of qualified calibration rows has to vary as chance has it."""
    found = {make().set_params(random_state=seed).fit(X, y).policy_.cutoffs[0].qualified for seed in range(8)}
    assert len(found) > 3


def test_prefit_uses_every_row_and_leaves_the_model_alone():
    fitted = LogisticRegression().fit(X[:1_000], y[:1_000])
    before = fitted.coef_.copy()
    for model in (
        sl.ShortlistClassifier(fitted, target=TARGET, prefit=True),
        sl.ShortlistClassifier(FrozenEstimator(fitted), target=TARGET),
    ):
        model.fit(X[1_000:], y[1_000:])
        assert model.policy_.cutoffs[0].rows == 3_000
    np.testing.assert_array_equal(before, fitted.coef_)
    with pytest.raises(NotFittedError):
        sl.ShortlistClassifier(LogisticRegression(), target=TARGET, prefit=True).fit(X, y)


def test_pipelines_search_and_clone():
    outer = make_pipeline(StandardScaler(), make()).fit(X, y)
    inner = sl.ShortlistClassifier(make_pipeline(StandardScaler(), LogisticRegression()), target=TARGET).fit(
        X, y
    )
    assert 0 < outer.predict(X).sum() < len(X) / 2
    assert 0 < inner.predict(X).sum() < len(X) / 2
    search = GridSearchCV(make(), {"estimator__C": [0.1, 1.0]}, cv=3, scoring="precision").fit(X, y)
    assert search.best_estimator_.policy_
    assert len(cross_val_predict(clone(make()), X, y, cv=3)) == len(X)


def test_decision_function_and_labels_of_any_kind():
    words = np.where(y == 1, "hire", "pass")
    model = sl.ShortlistClassifier(RidgeClassifier(), target=TARGET, pos_label="hire", random_state=0).fit(
        X, words
    )
    listed = model.predict(X) == "hire"
    np.testing.assert_array_equal(listed, model.shortlist(X))
    assert np.mean(y[listed]) > np.mean(y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(sl.InvalidInput, match="pos_label"):
        sl.ShortlistClassifier(RidgeClassifier(), target=TARGET, pos_label="maybe").fit(X, words)


def test_metadata_reaches_the_estimator_and_only_it():
    import sklearn

    weight = np.where(y == 1, 5.0, 1.0)
    plain = make().fit(X, y)
    weighted = make().fit(X, y, sample_weight=weight)
    assert not np.allclose(plain.estimator_.coef_, weighted.estimator_.coef_)
    assert weighted.policy_.cutoffs[0].rows == 2_000
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        routed = sl.ShortlistClassifier(inner, target=TARGET, random_state=0).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(routed.estimator_.coef_, weighted.estimator_.coef_)


def test_per_pool_targets_take_the_pool_as_a_whole():
    model = make().set_params(target=sl.PerPool(5, 100)).fit(X, y)
    assert model.predict(X[:150]).sum() >= 0
    with pytest.raises(sl.InvalidInput, match="pools of 100 or more"):
        model.predict(X[:99])


def test_three_classes_and_uncertifiable_targets():
    with pytest.raises(ValueError, match="Only binary classification"):
        make().fit(X, np.arange(len(y)) % 3)
    with pytest.raises(sl.NotCertifiable):
        make().set_params(target=sl.Expected(50, 100)).fit(X, y)


def test_misuse_is_explained():
    fitted = LogisticRegression().fit(X[:1_000], y[:1_000])
    prefit = sl.ShortlistClassifier(fitted, target=TARGET, prefit=True)
    with pytest.raises(sl.InvalidInput, match="sample_weight: nothing is fitted"):
        prefit.fit(X, y, sample_weight=np.ones(len(y)))
    with pytest.raises(sl.InvalidInput, match="prefit: expected True or False, got 'no'"):
        sl.ShortlistClassifier(fitted, target=TARGET, prefit="no").fit(X, y)
    with pytest.raises(sl.InvalidInput, match="fitted with class"):
        prefit.fit(X, np.where(y == 1, "yes", "no"))
