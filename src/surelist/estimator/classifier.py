"""A classifier whose positive predictions are a shortlist.

It delegates: scikit-learn fits and scores, ``calibrate`` certifies. What surrounds it is read in
``enclosing_fit``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from msgspec.structs import asdict, replace
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params, check_is_fitted, column_or_1d, indexable

from surelist import _check as check
from surelist._arrays import Column, Floats, Mask
from surelist._names import option
from surelist.errors import InvalidInput, NestedFitWarning
from surelist.estimator import enclosing_fit as nesting
from surelist.promises.calibrate import calibrate
from surelist.promises.conditions import Groups
from surelist.promises.options import GroupCutoff, GroupRows, GroupSplit, Rule
from surelist.promises.policy import Policy
from surelist.promises.promise import Needs, Promise

RESPONSES = ("auto", "predict_proba", "decision_function")
PLAIN_CLASSES = ([0, 1], [-1, 1])  # where the greater one is plainly the positive one; True and False too


def _has(method: str) -> Any:
    def available(self: ShortlistClassifier) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return available_if(available)


class ShortlistClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a classifier on one part of the rows, certify a shortlist on the other.

    **It must be the outermost estimator.** ``predict`` returns the positive class for candidates on the
    shortlist. The rows given to ``fit`` are split at random (never stratified: the number of qualified
    calibration rows must be left to chance), the estimator is fitted on one part and ``target`` is certified
    on the other. What is inside, a whole pipeline or search, never sees the calibration rows. What is around
    it has seen them all, and then the promise is not covered: with a ``SelectKBest`` before it, on 600 rows
    of 1,000 noise columns, it is false in more than nine fits of ten. A fit inside a pipeline, an ensemble, a
    search or cross-validation, and every fit of a copy made by ``clone``, warns (``NestedFitWarning``) and
    says so in ``policy_.conditions``; ``outermost`` moves ``ShortlistClassifier`` to the outside. A search
    over anything but the estimator is refused: what is promised is fixed before looking. What makes no
    copies (features chosen beforehand on all rows, a loop over fits) cannot be seen.

    A model fitted elsewhere is declared, with ``prefit=True`` or scikit-learn's ``FrozenEstimator``; then all
    rows given to ``fit`` are calibration rows and must be new.

    Parameters
    ----------
    estimator
        a binary classifier with ``predict_proba`` or ``decision_function``
    target
        ``Expected``, ``PerPool`` or ``Recall``; with ``groups``, a mapping of group to target
    alpha, rule, calibration_share, purpose, group_split, group_rows, group_cutoff
        as for :func:`surelist.calibrate`
    prefit
        the estimator is fitted already, on other rows
    calibration_size
        share (or number) of rows kept for calibration when not prefit
    response_method
        ``"auto"``, ``"predict_proba"`` or ``"decision_function"``
    pos_label
        the class that counts as qualified; needed unless labels are 0 and 1, -1 and 1, or booleans
    random_state
        seed of the split. One split, not redrawn [theory: setting].

    Attributes
    ----------
    policy_
        the certified :class:`surelist.Policy`
    estimator_
        the fitted classifier
    classes_
        the two classes

    Notes
    -----
    ``groups`` (one name per row, or a mapping of name to mask) goes with a target per group, in ``fit`` and
    in ``predict``. ``sample_weight`` and other metadata go to the estimator's ``fit``; they do not weight the
    calibration rows, since the promise is about candidates as they come. For a pool that
    differs from the calibration rows use ``surelist.calibrate(shift=...)``.

    Examples
    --------
    >>> import surelist as sl
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = make_classification(2_000, weights=[0.8], random_state=0)
    >>> model = sl.ShortlistClassifier(LogisticRegression(), target=sl.Expected(5, 100), random_state=0)
    >>> sorted(set(model.fit(X, y).predict(X[:100]).tolist()))  # 1: on the shortlist
    [0, 1]
    """

    _copied = False  # whether clone made it

    def __init__(
        self,
        estimator: Any,
        *,
        target: Any,
        alpha: float = 0.1,
        rule: Rule = "exact",
        calibration_share: float = 0.5,
        purpose: str | None = None,
        group_split: GroupSplit = "bonferroni",
        group_rows: GroupRows = "own",
        group_cutoff: GroupCutoff = "own",
        prefit: bool = False,
        calibration_size: float | int = 0.5,
        response_method: str = "auto",
        pos_label: object = None,
        random_state: object = None,
    ) -> None:
        self.estimator = estimator
        self.target = target
        self.alpha = alpha
        self.rule = rule
        self.calibration_share = calibration_share
        self.purpose = purpose
        self.group_split = group_split
        self.group_rows = group_rows
        self.group_cutoff = group_cutoff
        self.prefit = prefit
        self.calibration_size = calibration_size
        self.response_method = response_method
        self.pos_label = pos_label
        self.random_state = random_state

    @classmethod
    def outermost(cls, nested: Any) -> ShortlistClassifier:
        """A pipeline that ends in a ``ShortlistClassifier``, with that on the outside, unfitted.

        ``make_pipeline(A(), ShortlistClassifier(B(), target=T))`` becomes
        ``ShortlistClassifier(make_pipeline(A(), B()), target=T)``: A, too, is then fitted on other rows than
        those that certify T. Names of steps stay.
        """
        made: ShortlistClassifier = nesting.outermost(nested, cls)
        made._copied = False
        return made

    def __sklearn_clone__(self) -> ShortlistClassifier:
        """A copy that knows that it is one: what copies an estimator does so to fit it itself."""
        copy: ShortlistClassifier = super().__sklearn_clone__()
        copy._copied = True
        return copy

    def fit(self, X: Any, y: Any, groups: Any = None, **params: Any) -> ShortlistClassifier:
        """Fit the estimator on one part of the rows and certify the target on the other."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        check.as_choice(self.response_method, RESPONSES, "response_method")
        check.as_flag(self.prefit, "prefit")
        nested = self._warn_if_nested()
        self._require_counts()
        columns = {"X": X, "y": y, "groups": groups}
        check.require_one_index(**{k: v for k, v in columns.items() if not isinstance(v, Mapping)})
        X, y = indexable(X, y)
        y = column_or_1d(y, warn=True)
        check.require_rows(y, "y")
        self.classes_ = _two_classes(y)
        self._positive = self._positive_class()
        rows = self._fit_estimator(X, y, groups, params)
        policy = calibrate(
            self._scores(_safe_indexing(X, rows)), y[rows] == self._positive, self.target,
            alpha=self.alpha, rule=self.rule, calibration_share=self.calibration_share,
            groups=self._groups_of(groups, rows),
        )  # fmt: skip
        self.policy_: Policy = replace(policy, nested=nested)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def shortlist(self, X: object, groups: object = None) -> Mask:
        """True for every candidate of the pool who is on the shortlist."""
        check_is_fitted(self)
        return self.policy_.select(self._scores(X), groups=groups)

    def predict(self, X: object, groups: object = None) -> Column:
        """The positive class for candidates on the shortlist, the other class for the rest."""
        listed = self.shortlist(X, groups)
        other = self.classes_[0] if self._positive == self.classes_[1] else self.classes_[1]
        return np.asarray(np.where(listed, self._positive, other).astype(self.classes_.dtype))

    @_has("predict_proba")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Column:
        """The estimator's own probabilities; no promise is made about them."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Column:
        """The estimator's own decision function."""
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    @_has("set_output")  # type: ignore[untyped-decorator]
    def set_output(self, *, transform: Any = None) -> ShortlistClassifier:
        """As scikit-learn's, for the steps of the estimator."""
        for each in (self.estimator, getattr(self, "estimator_", self.estimator)):
            each.set_output(transform=transform)
        return self

    def get_metadata_routing(self) -> Any:
        """``groups`` is ours, where requested; all metadata goes to the estimator's fit."""
        mapping = MethodMapping().add(callee="fit", caller="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; ``target__k`` and the like reach into the target."""
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.target, Promise):
            params |= {f"target__{name}": value for name, value in asdict(self.target).items()}
        return params

    def set_params(self, **params: object) -> ShortlistClassifier:
        """Set parameters; refused inside a search for whatever the promise is made of."""
        fixed = [name for name in params if name.partition("__")[0] != "estimator"]
        if fixed and nesting.in_search(self):
            raise InvalidInput(
                fixed[0],
                "it is part of the promise, which is fixed before looking, and a search looks at the "
                "rows. Set it once; only estimator and what is inside it may be searched. To choose a "
                "target after looking: sl.guarantee_curve, then rule='simultaneous'.",
            )
        inside = {name: params.pop(name) for name in fixed if name.startswith("target__")}
        super().set_params(**params)
        if inside:
            self.target = self._changed_target(inside)
        return self

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._promise_html()

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        """The diagram that scikit-learn draws and, once fitted, what is promised."""
        shown: dict[str, str] = super()._repr_mimebundle_(**options)
        return {kind: text + self._promise_html() * (kind == "text/html") for kind, text in shown.items()}

    def _promise_html(self) -> str:
        return self.policy_._repr_html_() if hasattr(self, "policy_") else ""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _fit_estimator(self, X: Any, y: Column, groups: Any, params: dict[str, Any]) -> Column:
        """Fit, unless fitted already; returns the rows that are left for calibration."""
        if self._frozen():
            check_is_fitted(self.estimator)
            if params:
                raise InvalidInput(
                    next(iter(params)), "nothing is fitted when the model is prefit; leave it out."
                )
            self.estimator_ = self.estimator
            return np.arange(len(y))
        train, rows = train_test_split(
            np.arange(len(y)), test_size=self.calibration_size, random_state=self.random_state
        )
        fit_params = _check_method_params(X, self._routed(groups, params).estimator.fit, train)
        self.estimator_ = clone(self.estimator)
        self.estimator_.fit(_safe_indexing(X, train), y[train], **fit_params)
        return np.asarray(rows)

    def _frozen(self) -> bool:
        return bool(self.prefit) or isinstance(self.estimator, FrozenEstimator)

    def _warn_if_nested(self) -> str | None:
        """The warning goes into the policy's conditions too: a policy outlives it."""
        around, caller = nesting.surroundings(self)
        why = " ".join(nesting.objections(around, frozen=self._frozen()))
        found = f"ShortlistClassifier was not the outermost estimator. {why}" if why else None
        if found is None and self._copied and all(isinstance(each, Pipeline) for each in around):
            why = nesting.COPIED
            found = f"Whether ShortlistClassifier was the outermost estimator is not known. {why}"
        if found is not None:
            must = f"ShortlistClassifier must be the outermost estimator. {why}"
            warnings.warn(must, NestedFitWarning, stacklevel=caller + 1)
        return found

    def _routed(self, groups: object, params: dict[str, object]) -> Any:
        if get_config()["enable_metadata_routing"]:
            ours = {} if groups is None else {"groups": groups}  # the estimator may ask for them too
            return process_routing(self, "fit", **ours, **params)
        return Bunch(estimator=Bunch(fit={k: v for k, v in params.items() if v is not None}))

    def _require_counts(self) -> None:
        """Promises that need more than scores and labels have no way in through ``fit``."""
        given = self.target.values() if isinstance(self.target, Mapping) else self.target
        for each in [given] if isinstance(given, Promise) or not isinstance(given, Iterable) else given:
            if isinstance(each, Promise) and each.needs is not Needs.COUNTS:
                raise InvalidInput(
                    "target",
                    f"ShortlistClassifier takes promises that counts of rows decide, got {each!r}, which "
                    "needs more than fit is given: fit the model, then sl.calibrate(scores, y, target, "
                    "...).",
                )

    def _groups_of(self, groups: object, rows: Column) -> Groups | None:
        asked = Groups(groups, self.purpose, self.group_split, self.group_rows, self.group_cutoff)
        if groups is None:
            if self.purpose is not None:
                raise InvalidInput("purpose", f"goes with {option('groups')}, got {self.purpose!r} without.")
            return None
        if isinstance(groups, Mapping):
            return replace(asked, names={name: _safe_indexing(mask, rows) for name, mask in groups.items()})
        return replace(asked, names=_safe_indexing(groups, rows))

    def _changed_target(self, inside: dict[str, Any]) -> Any:
        """The target with ``target__k=...`` and the like applied."""
        asked = self.target.__struct_fields__ if isinstance(self.target, Promise) else ()
        known = [f"target__{name}" for name in asked]
        for name in inside:
            if not known:
                raise InvalidInput(name, f"a target per group is set as a whole, with {option('target')}.")
            check.as_choice(name, known, "set_params")
        return replace(self.target, **{name.removeprefix("target__"): inside[name] for name in inside})

    def _positive_class(self) -> Any:
        if self.pos_label is None:
            if self.classes_.dtype.kind in "biuf" and self.classes_.tolist() in PLAIN_CLASSES:
                return self.classes_[1]
            one, other = self.classes_.tolist()
            raise InvalidInput(
                "pos_label",
                f"expected the class that counts as qualified, {one!r} or {other!r}; only 0 and 1, -1 and 1, "
                "or False and True say so themselves.",
            )
        if self.pos_label not in self.classes_:
            known = f"one of {self.classes_.tolist()}"
            raise InvalidInput("pos_label", expected=known, got=repr(self.pos_label))
        return self.pos_label

    def _scores(self, X: Any) -> Floats:
        method = self.response_method
        if method == "auto":
            method = "predict_proba" if hasattr(self.estimator_, "predict_proba") else "decision_function"
        known = list(getattr(self.estimator_, "classes_", []))
        if self._positive not in known:
            wanted = f"a classifier fitted with class {self._positive!r}"
            raise InvalidInput("estimator", expected=wanted, got=f"classes {known}")
        column = known.index(self._positive)
        values = np.asarray(getattr(self.estimator_, method)(X), dtype=float)
        if values.ndim == 2:
            return values[:, column]
        return values if column == 1 else -values


def _two_classes(y: Column) -> Column:
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary":
        raise InvalidInput("", f"Only binary classification is supported. The type of the target is {kind}.")
    classes: Column = np.unique(y)
    if len(classes) != 2:
        raise InvalidInput("y", expected="two classes", got=f"one class: {classes[0]!r}")
    return classes
