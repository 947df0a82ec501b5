"""Whose fit is running around ours, what that means for the promise, and how to move ours to the outside.

The rows that certify a promise must not have had a part in the score. Inside ``fit`` the rows are split, so
everything *inside* the meta-estimator is safe; what lies around it has already seen all rows. scikit-learn
tells an estimator nothing of what calls it. Two things are known. Whatever fits an estimator of somebody's
choice fits a copy made by ``clone``, and a copy says so, in worker processes and threads too; only a
``Pipeline`` fits its last step itself. And the call stack, where it reaches that far, says who it was: a
``Pipeline`` or a search whose method is running has itself as ``self`` there, and the functions that
cross-validate are known by module and name. What does neither (a loop of one's own, a row set filtered
beforehand) cannot be seen.
"""

from __future__ import annotations

import sys
import traceback
from types import FrameType
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from surelist.errors import InvalidInput

VALIDATION = "sklearn.model_selection._validation"

Surrounding = Any  # the estimator that calls us, or VALIDATION

COPIED = (
    "It was a copy made by scikit-learn's clone, as ensembles, searches and cross-validation make it before "
    "they fit it on rows of their choice, also in worker processes; around them the promise is not covered. "
    "Put what is around it inside, ShortlistClassifier(BaggingClassifier(classifier), ...). If you made the "
    "copy and it is the outermost estimator, fit ShortlistClassifier.outermost(copy) instead."
)


def surroundings(estimator: object) -> tuple[list[Surrounding], int]:
    """The estimators of scikit-learn whose methods call ``estimator``'s, innermost first.

    ``VALIDATION`` stands for cross-validation. The number is how many frames up the caller of them all is.
    """
    around: list[Surrounding] = []
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))]
    caller = 2  # whoever calls fit
    for depth, frame in enumerate(frames):
        outer = _surrounding(frame, around[-1] if around else estimator)
        if outer is not None and all(outer is not each for each in around):
            around.append(outer)
        if outer is not None:
            caller = depth + 1
    while caller < len(frames) and _module(frames[caller]).startswith("sklearn."):
        caller += 1
    return around, caller


def in_search(estimator: object) -> bool:
    """Parameters are being tried out on the rows: by a search, or by ``validation_curve``."""
    return any(each == VALIDATION or isinstance(each, BaseSearchCV) for each in surroundings(estimator)[0])


def objections(around: list[Surrounding], *, frozen: bool) -> list[str]:
    """Why the promise is not covered there and what to do instead; empty where it is covered."""
    searches = [each for each in around if isinstance(each, BaseSearchCV)]
    reasons = [sentence for each in around if (sentence := _objection(each))]
    if VALIDATION in around and not searches and not frozen:
        reasons.append(
            "In cross-validation every fit makes a promise of its own. Whatever is chosen by comparing them "
            "is chosen after looking at these rows: keep other rows for the fit whose promise counts, or "
            "cross-validate the model that goes inside."
        )
    return reasons


def learns(step: object) -> bool:
    """Whether fitting a step may change it: not so if frozen, stateless or passed through."""
    if step is None or isinstance(step, (str, FrozenEstimator)):
        return False
    if isinstance(step, Pipeline):
        return any(learns(each) for _, each in step.steps)
    try:
        return bool(get_tags(step).requires_fit)
    except (AttributeError, TypeError, ValueError):  # a step with no tags: nothing is known of it
        return True


def _objection(around: Surrounding) -> str | None:
    if isinstance(around, str):
        return None  # said once, for all of cross-validation
    kind = type(around).__name__
    if isinstance(around, Pipeline):
        steps = [repr(name) for name, step in around.steps[:-1] if learns(step)]
        if not steps:
            return None
        named, were = ("steps", "were") if len(steps) > 1 else ("step", "was")
        return (
            f"The {named} {', '.join(steps)} before it {were} "
            "fitted on the rows that certify the promise, so the score is not independent of them and the "
            "promise is not covered. Put the pipeline inside, ShortlistClassifier(make_pipeline(..., "
            "classifier)), or use ShortlistClassifier.outermost(pipeline), which does that."
        )
    if isinstance(around, BaseSearchCV):
        return (
            f"{kind} chooses by looking at the rows that certify the promise, which is then not covered. "
            f"Put the search inside: ShortlistClassifier({kind}(classifier, ...))."
        )
    inside = f"{kind}(classifier, ...)"
    if not hasattr(around, "predict"):
        inside = f"make_pipeline({inside}, classifier)"
    return (
        f"It is fitted inside {kind}: the promise is about its own shortlist of rows as {kind} hands them "
        f"over, not about what {kind} answers. Put that inside: ShortlistClassifier({inside})."
    )


def _surrounding(frame: FrameType, inner: object) -> Surrounding | None:
    """What of scikit-learn runs in this frame and has ``inner`` fitted, if anything."""
    code = frame.f_code
    if _module(frame) == VALIDATION:
        return VALIDATION
    if code.co_varnames[:1] != ("self",):
        return None
    owner = frame.f_locals.get("self")
    if owner is inner or not isinstance(owner, BaseEstimator):
        return None
    if isinstance(owner, Pipeline):  # it fits its last step itself, not a copy of it
        return owner if inner == VALIDATION or owner.steps[-1][1] is inner else None
    known = isinstance(owner, BaseSearchCV) or type(owner).__module__.startswith("sklearn.")
    return owner if known else None


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def outermost(nested: Any, kind: type[Any]) -> Any:
    """The classifier of class ``kind`` around the pipelines that end in it."""
    if isinstance(nested, kind):
        return clone(nested)
    if not isinstance(nested, Pipeline):
        wanted = f"a Pipeline that ends in {kind.__name__}"
        raise InvalidInput("nested", expected=wanted, got=type(nested).__name__)
    name, last = nested.steps[-1]
    classifier = outermost(last, kind)
    if classifier.prefit:
        raise InvalidInput(
            "prefit",
            "the steps around a prefit model would be fitted anew. Fit all of them on other rows and "
            "calibrate the whole: ShortlistClassifier(FrozenEstimator(pipeline), ...).",
        )
    inside = clone(nested).set_params(**{name: classifier.estimator})
    return classifier.set_params(estimator=inside)
