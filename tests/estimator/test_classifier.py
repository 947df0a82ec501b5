"""The scikit-learn meta-estimator: its conventions, and that held-out data stay held out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

import surelist as sl

X, y = make_classification(4_000, 8, weights=[0.8], random_state=0)
TARGET = sl.Expected(5, 100)

NOT_ARGMAX = "predict says who is on the shortlist, which is not the argmax of the model's own scores"
NAMELESS = "labels 1 and 2, or words, do not say which of them is qualified: pos_label is required"
EXPECTED_FAILURES = {
    "check_classifiers_train": NOT_ARGMAX,
    "check_classifiers_one_label_sample_weights": NOT_ARGMAX,
    "check_classifiers_classes": NAMELESS,
    "check_estimators_dtypes": NAMELESS,
    "check_classifier_data_not_an_array": NAMELESS,
    "check_fit2d_1feature": NAMELESS,
}
ON_SOME_MACHINES = {
    "check_methods_subset_invariance": "the threshold is a calibration row's own score; where the model's "
    "scores of a batch and of single rows differ in the last bit, that moves exactly this row",
}


def make(**options):
    return sl.ShortlistClassifier(LogisticRegression(), target=TARGET, random_state=0, **options)


def outcomes(**options):
    small = sl.ShortlistClassifier(
        LogisticRegression(), target=sl.Expected(0.1, 100), alpha=0.5, random_state=0, **options
    )
    results = check_estimator(small, on_fail=None, on_skip=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    return failed, {r["check_name"] for r in results if r["status"] == "passed"} - failed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # scikit-learn's own checks feed NaN and inf on purpose
def test_every_check_of_scikit_learn_that_fails_is_named_with_its_reason():
    failed, passed = outcomes()
    assert failed - set(ON_SOME_MACHINES) == set(EXPECTED_FAILURES)
    assert len(passed) > 40


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_checks_with_labels_1_and_2_pass_once_the_class_is_named():
    _, passed = outcomes(pos_label=2)
    assert {"check_estimators_dtypes", "check_classifier_data_not_an_array"} <= passed


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


def test_labels_that_do_not_say_what_they_mean_need_pos_label():
    """In alphabetical order the "greater" of eligible and ineligible is ineligible."""
    words = np.where(y == 1, "eligible", "ineligible")
    for labels, classes in ((words, "'eligible' or 'ineligible'"), (y + 1, "1 or 2")):
        with pytest.raises(sl.InvalidInput, match=f"pos_label: expected the class .* {classes}"):
            make().fit(X, labels)
    named = make(pos_label="eligible").fit(X, words)
    np.testing.assert_array_equal(named.shortlist(X), make().fit(X, y).shortlist(X))
    for labels in (y * 2 - 1, y.astype(bool), y.astype(float)):
        np.testing.assert_array_equal(make().fit(X, labels).shortlist(X), named.shortlist(X))


def test_groups_go_with_fit_and_predict():
    groups = np.where(np.arange(len(y)) % 3 == 0, "b", "a")
    target = {"a": sl.Expected(3, 67), "b": sl.Expected(1.5, 33)}
    model = make(purpose="a test", group_split="sidak").set_params(target=target).fit(X, y, groups=groups)
    assert sum(cutoff.rows for cutoff in model.policy_.cutoffs) == 2_000
    assert model.policy_.purpose == "a test"
    assert model.policy_.group_split == "sidak"
    scores = model.predict_proba(X)[:, 1]
    limits = np.where(groups == "b", model.policy_.thresholds["b"], model.policy_.thresholds["a"])
    np.testing.assert_array_equal(model.predict(X, groups=groups), (scores >= limits).astype(int))
    masks = {"a": groups == "a", "b": groups == "b"}
    again = sl.ShortlistClassifier.outermost(model).set_params(group_split="bonferroni")
    overlapping = again.fit(X, y, groups=masks)
    assert [cutoff.rows for cutoff in overlapping.policy_.cutoffs] == [
        cutoff.rows for cutoff in model.policy_.cutoffs
    ]
    with pytest.raises(sl.InvalidInput, match="pass groups="):
        model.predict(X)


def test_groups_are_routed_as_metadata():
    groups = np.where(np.arange(len(y)) % 3 == 0, "b", "a")
    target = {"a": sl.Expected(3, 67), "b": sl.Expected(1.5, 33)}
    with sklearn.config_context(enable_metadata_routing=True):
        inner = make(purpose="a test").set_params(target=target)
        inner.set_fit_request(groups=True).set_predict_request(groups=True)
        pipeline = make_pipeline(Normalizer(), inner).fit(X, y, groups=groups)
        listed = pipeline.predict(X, groups=groups)
        alone = inner.fit(Normalizer().transform(X), y, groups=groups)
    np.testing.assert_array_equal(listed, alone.predict(Normalizer().transform(X), groups=groups))


def test_parts_of_the_target_are_parameters():
    model = make()
    assert model.get_params()["target__k"] == 5
    assert "target__k" not in model.get_params(deep=False)
    assert model.set_params(target__k=6, alpha=0.2).target == sl.Expected(6, 100)
    assert model.set_params(target=sl.Recall(0.9), target__share=0.8).target == sl.Recall(0.8)
    with pytest.raises(sl.InvalidInput, match="expected one of 'target__share', got 'target__k'"):
        model.set_params(target__k=6)
    model.set_params(target={"a": TARGET})
    with pytest.raises(sl.InvalidInput, match="target__k: a target per group is set as a whole"):
        model.set_params(target__k=6)


def test_dataframes_keep_their_names_on_the_way_in():
    frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    inside = make_pipeline(StandardScaler(), LogisticRegression()).set_output(transform="pandas")
    model = sl.ShortlistClassifier(inside, target=TARGET, random_state=0).fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert list(model.estimator_[-1].feature_names_in_) == list(frame.columns)
    plain = sl.ShortlistClassifier(
        clone(inside).set_output(transform="default"), target=TARGET, random_state=0
    )
    np.testing.assert_array_equal(model.predict(frame), plain.fit(X, y).predict(X))


def test_set_output_passes_through_to_the_steps():
    frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
    steps = make_pipeline(StandardScaler(), LogisticRegression())
    model = sl.ShortlistClassifier(steps, target=TARGET, random_state=0).set_output(transform="pandas")
    assert list(model.fit(frame, y).estimator_[-1].feature_names_in_) == list(frame.columns)
    assert isinstance(model.estimator_[0].transform(frame), pd.DataFrame)
    assert isinstance(model.set_output(transform="default").estimator_[0].transform(frame), np.ndarray)
    assert not hasattr(make(), "set_output")  # LogisticRegression has none


def test_metadata_reaches_the_estimator_and_only_it():
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
        prefit.set_params(pos_label="yes").fit(X, np.where(y == 1, "yes", "no"))


def test_the_html_of_a_fitted_classifier_shows_its_promise():
    X, y = make_classification(1_200, weights=[0.7], random_state=0)
    model = sl.ShortlistClassifier(LogisticRegression(), target=TARGET, random_state=0)
    assert "The promise rests on" not in model._repr_html_()
    model.fit(X, y)
    for page in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert model.policy_._repr_html_() in page
        assert "LogisticRegression" in page
    assert "The promise" not in model._repr_mimebundle_()["text/plain"]


@pytest.mark.parametrize(
    "target", [sl.Precision(0.5, start=0.1), sl.Budget(10, 100), sl.NextPool(k=3), {"a": sl.PoolAverage(3)}]
)
def test_a_promise_that_fit_cannot_certify_is_refused_before_anything_is_fitted(target):
    with pytest.raises(sl.InvalidInput, match="fit the model, then"):
        sl.ShortlistClassifier(LogisticRegression(), target=target).fit(np.zeros((4, 1)), [0, 1, 0, 1])


def test_a_promise_that_fit_cannot_certify_is_the_one_that_is_named():
    target = {"a": sl.Expected(3, 100), "b": sl.Budget(10, 100)}
    with pytest.raises(sl.InvalidInput, match="got Budget"):
        sl.ShortlistClassifier(LogisticRegression(), target=target).fit(np.zeros((4, 1)), [0, 1, 0, 1])


@pytest.mark.parametrize("target", [5, None, [], "expect:5/100"])
def test_what_is_no_promise_is_answered_with_those_there_are(target):
    with pytest.raises(sl.InvalidInput, match=r"^target: "):
        sl.ShortlistClassifier(LogisticRegression(), target=target).fit(X, y)
    both = {"a": TARGET, "b": target}
    with pytest.raises(sl.InvalidInput, match=r"^target\['b'\]: "):
        sl.ShortlistClassifier(LogisticRegression(), target=both).fit(X, y, groups=np.where(y, "a", "b"))


def test_several_promises_of_one_list_are_fitted_together():
    model = make().set_params(target=[TARGET, sl.Recall(0.5)]).fit(X, y)
    assert [cutoff.target for cutoff in model.policy_.cutoffs] == [TARGET, sl.Recall(0.5)]


@pytest.mark.parametrize("options", [{"group_split": "evenly"}, {"group_rows": "some"}])
def test_settings_of_groups_are_read_without_groups_too(options):
    (name,) = options
    with pytest.raises(sl.InvalidInput, match=f"{name}: expected one of"):
        make(**options).fit(X, y)
