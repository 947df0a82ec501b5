"""A pipeline or search that ends in ``ShortlistClassifier``, with that moved to the outside."""

from __future__ import annotations

from typing import Any, TypeVar

from sklearn.base import clone
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline

from surelist.errors import InvalidInput

Classifier = TypeVar("Classifier", bound=Any)

GRIDS = ("param_grid", "param_distributions")  # what the searches of scikit-learn call their parameters


def outermost(nested: Any, kind: type[Classifier]) -> tuple[Classifier, str]:
    """The classifier of class ``kind`` around all else, and by which name ``nested`` knew its estimator."""
    if isinstance(nested, kind):
        return clone(nested), "estimator"
    if isinstance(nested, Pipeline):
        steps = clone(nested).steps
        name, last = steps[-1]
        classifier, path = outermost(last, kind)
        _require_unfitted(classifier)
        inside = clone(nested).set_params(steps=[*steps[:-1], (name, classifier.estimator)])
        return classifier.set_params(estimator=inside), f"{name}__{path}"
    grid = next((each for each in GRIDS if hasattr(nested, each)), None)
    if isinstance(nested, BaseSearchCV) and grid is not None:
        classifier, path = outermost(nested.estimator, kind)
        _require_unfitted(classifier)
        tried = {grid: _renamed(getattr(nested, grid), path)}
        inside = clone(nested).set_params(estimator=classifier.estimator, **tried)
        return classifier.set_params(estimator=inside), f"estimator__{path}"
    raise InvalidInput(
        "nested",
        expected=f"a Pipeline or a search that ends in {kind.__name__}",
        got=f"{type(nested).__name__}",
    )


def _renamed(grid: Any, path: str) -> Any:
    """The parameters of a search, as the model inside knows them: ``path`` loses its last part."""
    if not isinstance(grid, dict):
        return [_renamed(each, path) for each in grid]
    return {_inside(key, path): values for key, values in grid.items()}


def _inside(key: str, path: str) -> str:
    holder = path.removesuffix("estimator")  # '' or 'step__': where the classifier itself was
    if not key.startswith(holder) and f"{key}__" != holder:
        return key
    rest = key.removeprefix(holder)
    if rest.partition("__")[0] != "estimator":
        raise InvalidInput(key, "it is part of the promise and cannot be chosen by looking; leave it out.")
    name = (holder.removesuffix("__") + rest.removeprefix("estimator")).removeprefix("__")
    if not name:
        raise InvalidInput(
            key, "a search cannot replace its own model; give it a Pipeline with a step of that name."
        )
    return name


def _require_unfitted(classifier: Any) -> None:
    if classifier.prefit:
        raise InvalidInput(
            "prefit",
            "the steps around a prefit model would be fitted anew. Fit all of them on other rows and "
            "calibrate the whole: ShortlistClassifier(FrozenEstimator(pipeline), ...).",
        )
