"""A scikit-learn meta-estimator: a classifier whose positive predictions are a shortlist.

It delegates: scikit-learn fits and scores, ``calibration`` certifies. Needs the ``sklearn`` extra.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from surelist import _check as check
from surelist.errors import InvalidInput, MissingDependency
from surelist.promises.calibration import calibrate
from surelist.promises.options import Rule
from surelist.promises.policy import Policy

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
    from sklearn.frozen import FrozenEstimator
    from sklearn.model_selection import train_test_split
    from sklearn.utils import Bunch, _safe_indexing, get_tags
    from sklearn.utils.metadata_routing import (
        MetadataRouter,
        MethodMapping,
        process_routing,
    )
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import _check_method_params, check_is_fitted, column_or_1d, indexable
except ImportError as error:
    raise MissingDependency(
        "ShortlistClassifier needs scikit-learn: pip install 'surelist[sklearn]'."
    ) from error

RESPONSES = ("auto", "predict_proba", "decision_function")


def _has(method: str) -> Any:
    def found(self: ShortlistClassifier) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return available_if(found)


class ShortlistClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a classifier on one part of the rows, certify a shortlist on the other.

    ``predict`` returns the positive class for candidates on the shortlist. The rows given to
    ``fit`` are split at random (never stratified: the number of qualified calibration rows
    must be left to chance), the estimator is fitted on one part and ``target`` is certified
    on the other, so calibrating on the rows the model was fitted on cannot happen by
    accident. A model fitted elsewhere is said so, with ``prefit=True`` or scikit-learn's
    ``FrozenEstimator``; then all rows given to ``fit`` are calibration rows and must be new.

    Parameters
    ----------
    estimator : a binary classifier with ``predict_proba`` or ``decision_function``
    target : ``Expected``, ``PerPool`` or ``Recall``
    alpha, rule, calibration_share : as for :func:`surelist.calibrate`
    prefit : the estimator is fitted already, on other rows
    calibration_size : share (or number) of rows kept for calibration when not prefit
    response_method : ``"auto"``, ``"predict_proba"`` or ``"decision_function"``
    pos_label : the class that counts as qualified; default: the greater of the two
    random_state : seed of the split. One split, not redrawn [theory: setting].

    Attributes
    ----------
    policy_ : the certified :class:`surelist.Policy`
    estimator_ : the fitted classifier
    classes_ : the two classes

    Notes
    -----
    ``sample_weight`` and other metadata go to the estimator's ``fit``; they do not weight the
    calibration rows, since the promise is about candidates as they come. For a pool that
    differs from the calibration rows use ``surelist.calibrate(weights=...)``.
    """

    def __init__(
        self,
        estimator: Any,
        *,
        target: Any,
        alpha: float = 0.1,
        rule: Rule = "exact",
        calibration_share: float = 0.5,
        prefit: bool = False,
        calibration_size: float | int = 0.5,
        response_method: str = "auto",
        pos_label: Any = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.target = target
        self.alpha = alpha
        self.rule = rule
        self.calibration_share = calibration_share
        self.prefit = prefit
        self.calibration_size = calibration_size
        self.response_method = response_method
        self.pos_label = pos_label
        self.random_state = random_state

    def fit(self, X: Any, y: Any, **params: Any) -> ShortlistClassifier:
        """Fit the estimator on one part of the rows and certify the target on the other."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        check.as_choice(self.response_method, RESPONSES, "response_method")
        check.as_flag(self.prefit, "prefit")
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        check.require_rows(y, "y")
        self.classes_ = self._two_classes(y)
        if self.prefit or isinstance(self.estimator, FrozenEstimator):
            check_is_fitted(self.estimator)
            if params:
                raise InvalidInput(
                    f"{next(iter(params))}: nothing is fitted when the model is prefit; leave it out."
                )
            self.estimator_, rows = self.estimator, np.arange(len(y))
        else:
            train, rows = train_test_split(
                np.arange(len(y)), test_size=self.calibration_size, random_state=self.random_state
            )
            fit_params = _check_method_params(X, self._routed(params).estimator.fit, train)
            self.estimator_ = clone(self.estimator)
            self.estimator_.fit(_safe_indexing(X, train), y[train], **fit_params)
        self._positive = self._positive_class()
        self.policy_: Policy = calibrate(
            self._scores(_safe_indexing(X, rows)), y[rows] == self._positive, self.target,
            alpha=self.alpha, rule=self.rule, calibration_share=self.calibration_share,
        )  # fmt: skip
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def shortlist(self, X: Any) -> NDArray[np.bool_]:
        """True for every candidate of the pool who is on the shortlist."""
        check_is_fitted(self)
        return self.policy_.select(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The positive class for candidates on the shortlist, the other class for the rest."""
        listed = self.shortlist(X)
        other = self.classes_[0] if self._positive == self.classes_[1] else self.classes_[1]
        found: NDArray[Any] = np.where(listed, self._positive, other).astype(self.classes_.dtype)
        return found

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[Any]:
        """The estimator's own probabilities; no promise is made about them."""
        check_is_fitted(self)
        found: NDArray[Any] = self.estimator_.predict_proba(X)
        return found

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[Any]:
        """The estimator's own decision function."""
        check_is_fitted(self)
        found: NDArray[Any] = self.estimator_.decision_function(X)
        return found

    def get_metadata_routing(self) -> Any:
        """Metadata goes to the estimator's fit."""
        return MetadataRouter(owner=self).add(
            estimator=self.estimator, method_mapping=MethodMapping().add(callee="fit", caller="fit")
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _routed(self, params: dict[str, Any]) -> Any:
        from sklearn import get_config

        if get_config()["enable_metadata_routing"]:
            return process_routing(self, "fit", **params)
        return Bunch(estimator=Bunch(fit={k: v for k, v in params.items() if v is not None}))

    def _two_classes(self, y: NDArray[Any]) -> NDArray[Any]:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise InvalidInput(f"Only binary classification is supported. The type of the target is {kind}.")
        classes: NDArray[Any] = np.unique(y)
        if len(classes) != 2:
            raise InvalidInput(f"y: expected two classes, got one class: {classes[0]!r}.")
        return classes

    def _positive_class(self) -> Any:
        if self.pos_label is None:
            return self.classes_[1]
        if self.pos_label not in self.classes_:
            raise InvalidInput(
                f"pos_label: expected one of {self.classes_.tolist()}, got {self.pos_label!r}."
            )
        return self.pos_label

    def _scores(self, X: Any) -> NDArray[np.float64]:
        method = self.response_method
        if method == "auto":
            method = "predict_proba" if hasattr(self.estimator_, "predict_proba") else "decision_function"
        known = list(getattr(self.estimator_, "classes_", []))
        if self._positive not in known:
            raise InvalidInput(
                f"estimator: expected a classifier fitted with class {self._positive!r}, got classes {known}."
            )
        place = known.index(self._positive)
        values = np.asarray(getattr(self.estimator_, method)(X), dtype=float)
        if values.ndim == 2:
            return values[:, place]
        return values if place == 1 else -values
