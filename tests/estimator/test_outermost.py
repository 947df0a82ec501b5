"""ShortlistClassifier is the outermost estimator: warned of where it is not, turned inside out on request."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import SelectKBest, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import surelist as sl

pytestmark = pytest.mark.slow

X, y = make_classification(1_200, 8, weights=[0.7], random_state=0)
TARGET = sl.Expected(5, 100)


def make(estimator=None, **options):
    return sl.ShortlistClassifier(estimator or LogisticRegression(), target=TARGET, random_state=0, **options)


def false_promises(build, runs, seed):
    """How often the promise is false on noise: the label is independent of all 1,000 columns."""
    rng = np.random.default_rng(seed)
    false = 0
    for _ in range(runs):
        rows, labels = rng.normal(size=(600, 1_000)), (rng.random(600) < 0.2).astype(int)
        listed = build().fit(rows, labels).predict(rng.normal(size=(1_000, 1_000))).mean()
        false += 0.2 * listed < 0.05 - 3 * 0.2 * np.sqrt(0.25 * 0.75 / 1_000)
    return false


@pytest.mark.slow
def test_features_chosen_outside_break_the_promise_and_inside_they_do_not():
    def nested():
        return make_pipeline(SelectKBest(k=15), make())

    with pytest.warns(sl.NestedFitWarning, match="'selectkbest' before it was fitted"):
        assert false_promises(nested, 12, seed=1) >= 8
    turned = false_promises(lambda: sl.ShortlistClassifier.outermost(nested()), 40, seed=2)
    assert stats.binom.sf(turned - 1, 40, 0.1) > 1e-6


class NoTags(TransformerMixin):
    """A transformer of somebody's own, without tags."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


@pytest.mark.parametrize(
    ("around", "step"),
    [
        (lambda: make_pipeline(StandardScaler(), make()), "'standardscaler' before it was"),
        (
            lambda: make_pipeline(SelectKBest(k=4), StandardScaler(), make()),
            "'selectkbest', 'standardscaler'",
        ),
        (lambda: make_pipeline(SelectKBest(k=4), make_pipeline(make())), "'selectkbest'"),
        (lambda: make_pipeline(make_pipeline(SelectKBest(k=4)), make()), "'pipeline'"),
        (
            lambda: make_pipeline(ColumnTransformer([("s", StandardScaler(), [0, 1])]), make()),
            "'columntransf",
        ),
        (lambda: make_pipeline(NoTags(), make()), "'notags'"),
        (
            lambda: make_pipeline(SelectKBest(k=8), make(FrozenEstimator(LogisticRegression().fit(X, y)))),
            "'selectkbest'",
        ),
        (lambda: BaggingClassifier(make(), 2, random_state=0), "fitted inside BaggingClassifier"),
    ],
)
def test_a_step_that_learns_before_it_is_noticed(around, step):
    with pytest.warns(sl.NestedFitWarning, match=step) as noted:
        around().fit(X, y)
    assert all(each.filename == __file__ for each in noted)


@pytest.mark.slow
@pytest.mark.parametrize(
    "run",
    [
        lambda: GridSearchCV(make(), {"estimator__C": [0.1, 1]}, cv=2).fit(X, y),
        lambda: GridSearchCV(make(), {"estimator__C": [0.1, 1]}, cv=2, n_jobs=2).fit(X, y),
        lambda: RandomizedSearchCV(make(), {"estimator__C": [0.1, 1]}, n_iter=2, cv=2).fit(X, y),
        lambda: GridSearchCV(make_pipeline(make()), {"shortlistclassifier__estimator__C": [1]}, cv=2).fit(
            X, y
        ),
    ],
)
def test_a_search_around_it_is_noticed(run):
    with pytest.warns(sl.NestedFitWarning, match="SearchCV chooses by looking .* Put the search inside"):
        run()


@pytest.mark.parametrize(
    "run",
    [
        lambda: cross_validate(make(), X, y, cv=2),
        lambda: cross_val_score(make(), X, y, cv=2),
        lambda: cross_val_predict(make(), X, y, cv=2),
        lambda: learning_curve(make(), X, y, train_sizes=[0.9], cv=2),
        lambda: validation_curve(make(), X, y, param_name="estimator__C", param_range=[1.0], cv=2),
    ],
)
def test_cross_validation_around_it_is_noticed(run):
    with pytest.warns(sl.NestedFitWarning, match="In cross-validation every fit makes a promise of its own"):
        run()


@pytest.mark.slow
def test_workers_of_cross_validation_warn_too():
    code = (
        "from sklearn.datasets import make_classification\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "from sklearn.model_selection import cross_validate\n"
        "import surelist as sl\n"
        "X, y = make_classification(1_200, 8, weights=[0.7], random_state=0)\n"
        "model = sl.ShortlistClassifier(LogisticRegression(), target=sl.Expected(5, 100))\n"
        "cross_validate(model, X, y, cv=2, n_jobs=2, error_score='raise')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ)
    assert run.returncode == 0, run.stderr
    assert "NestedFitWarning" in run.stderr


AROUND = {
    "bagging": lambda model, jobs: BaggingClassifier(model, 2, random_state=0, n_jobs=jobs),
    "voting": lambda model, jobs: VotingClassifier([("a", model), ("b", model)], n_jobs=jobs),
    "stacking": lambda model, jobs: StackingClassifier([("a", model)], cv=2, n_jobs=jobs),
    "calibrated": lambda model, jobs: CalibratedClassifierCV(model, cv=2, ensemble=True, n_jobs=jobs),
    "one against the rest": lambda model, jobs: OneVsRestClassifier(model, n_jobs=jobs),
    "bagged pipeline": lambda model, jobs: BaggingClassifier(
        make_pipeline(FunctionTransformer(np.abs), model), 2, random_state=0, n_jobs=jobs
    ),
}


def made_inside(fitted):
    """The shortlist classifiers that something fitted."""
    if hasattr(fitted, "calibrated_classifiers_"):
        return [each.estimator for each in fitted.calibrated_classifiers_]
    return [each[-1] if isinstance(each, Pipeline) else each for each in fitted.estimators_]


@pytest.mark.parametrize("around", AROUND)
def test_what_is_around_it_is_noticed_in_workers_too(around):
    with warnings.catch_warnings(), parallel_config("threading"):  # no frame of the caller is on their stack
        warnings.simplefilter("ignore")
        fitted = AROUND[around](make(), 2).fit(X, y)
    for each in made_inside(fitted):
        assert "outermost estimator" in each.policy_.nested
        assert each.policy_.conditions[-1] == each.policy_.nested


@pytest.mark.slow
@pytest.mark.parametrize("around", ["bagging", "voting"])
def test_what_is_around_it_is_noticed_in_worker_processes_too(around):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = AROUND[around](make(), 2).fit(X, y)
    assert all("is not known. It was a copy" in each.policy_.nested for each in made_inside(fitted))


def test_a_copy_says_that_it_is_one_and_its_owner_can_vouch_for_it():
    copy = clone(make())
    with pytest.warns(sl.NestedFitWarning, match=r"a copy made by scikit-learn's clone") as noted:
        copy.fit(X, y)
    assert noted[0].filename == __file__
    assert copy.policy_.conditions[-1].startswith(
        "Whether ShortlistClassifier was the outermost estimator is not"
    )
    vouched = sl.ShortlistClassifier.outermost(copy).fit(X, y)
    assert vouched.policy_.nested is None
    assert vouched.policy_.threshold == copy.policy_.threshold


def test_no_false_alarms():
    fitted = LogisticRegression().fit(X[:600], y[:600])
    scaler = StandardScaler().fit(X[:600])
    frozen = make(FrozenEstimator(fitted))

    class Application(BaseEstimator):
        """Somebody's own class that fits the whole as it should be."""

        def fit(self, X, y):
            self.model_ = make().fit(X, y)
            return self

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(make_pipeline(SelectKBest(k=4), LogisticRegression())).fit(X, y)
        make(GridSearchCV(LogisticRegression(), {"C": [0.1, 1]}, cv=2)).fit(X, y)
        make(fitted, prefit=True).fit(X[600:], y[600:])
        frozen.fit(X[600:], y[600:])
        cross_validate(frozen, X[600:], y[600:], cv=2)
        make_pipeline(make()).fit(X, y)
        make_pipeline(FunctionTransformer(np.abs), "passthrough", make()).fit(X, y)
        make_pipeline(FrozenEstimator(scaler), frozen).fit(X[600:], y[600:])
        make_pipeline(SelectKBest(k=4), FrozenEstimator(make().fit(X[:, :4], y))).fit(X, y)
        Application().fit(X, y)


GRIDS: list[dict[str, list[Any]]] = [
    {"target": [TARGET]}, {"alpha": [0.1, 0.2]}, {"target__k": [3, 5]}, {"random_state": [0, 1]}, {"rule": ["dkw"]},
]  # fmt: skip
IN_WORKERS = [pytest.param(each, 2, marks=pytest.mark.exhaustive) for each in GRIDS[1:]]


@pytest.mark.parametrize(("grid", "jobs"), [*((each, None) for each in GRIDS), (GRIDS[0], 2), *IN_WORKERS])
def test_a_search_over_the_promise_is_refused(grid, jobs):
    name = next(iter(grid))
    with pytest.raises(sl.InvalidInput, match=f"^{name}: it is part of the promise"):
        GridSearchCV(make(), grid, cv=2, n_jobs=jobs).fit(X, y)
    if jobs is None:
        within = {f"shortlistclassifier__{name}": grid[name]}
        with pytest.raises(sl.InvalidInput, match=f"^{name}: it is part of the promise"):
            RandomizedSearchCV(make_pipeline(make()), within, n_iter=1, cv=2).fit(X, y)
    assert make().set_params(**{name: grid[name][0]})


def test_a_pipeline_is_turned_inside_out():
    nested = Pipeline([("scale", StandardScaler()), ("pick", SelectKBest(k=4)), ("list", make(alpha=0.2))])
    turned = sl.ShortlistClassifier.outermost(nested)
    assert (turned.alpha, turned.target, turned.random_state) == (0.2, TARGET, 0)
    assert [name for name, _ in turned.estimator.steps] == ["scale", "pick", "list"]
    by_hand = make(
        make_pipeline(StandardScaler(), SelectKBest(k=4), LogisticRegression()), alpha=0.2
    ).fit(X, y)  # fmt: skip
    np.testing.assert_array_equal(turned.fit(X, y).predict(X), by_hand.predict(X))
    assert isinstance(nested[-1], sl.ShortlistClassifier)  # the original is left alone
    again = sl.ShortlistClassifier.outermost(turned)
    assert again.get_params()["estimator__pick__k"] == 4


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        (LogisticRegression(), "ends in ShortlistClassifier, got LogisticRegression"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "got LogisticRegression"),
        (GridSearchCV(make(), {"estimator__C": [1]}), "a Pipeline that ends in .*, got GridSearchCV"),
        (make_pipeline(StandardScaler(), make(prefit=True)), "FrozenEstimator"),
    ],
)
def test_what_cannot_be_turned_is_said(nested, message):
    with pytest.raises(sl.InvalidInput, match=message):
        sl.ShortlistClassifier.outermost(nested)


def test_a_policy_made_inside_a_pipeline_says_so_in_its_conditions_wherever_it_goes(tmp_path):
    with pytest.warns(sl.NestedFitWarning):
        nested = make_pipeline(SelectKBest(k=4), make()).fit(X, y)[-1].policy_
    nested.save(tmp_path / "policy.json")
    for policy in (nested, sl.Policy.load(tmp_path / "policy.json")):
        last = policy.conditions[-1]
        assert last.startswith("ShortlistClassifier was not the outermost estimator. The step 'selectkbest'")
        assert "the promise is not covered" in last
    alone = make().fit(X, y).policy_
    assert "outermost" not in " ".join(alone.conditions)


def test_the_way_out_of_a_selector_of_features_has_a_classifier_behind_it():
    selector = SequentialFeatureSelector(make(), n_features_to_select=1, cv=2)
    with pytest.warns(sl.NestedFitWarning) as caught:
        selector.fit(X[:, :2], y)
    way_out = "ShortlistClassifier(make_pipeline(SequentialFeatureSelector(classifier, ...), classifier))"
    assert way_out in str(caught[0].message)
