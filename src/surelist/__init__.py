"""surelist: shortlists with a proof."""

from typing import TYPE_CHECKING, Any

from surelist import baselines, bounds
from surelist._version import __version__
from surelist.calibration import calibrate
from surelist.curve import GuaranteeCurve, guarantee_curve
from surelist.errors import (
    GroupCutoffWarning,
    InvalidInput,
    MissingDependency,
    NotCertifiable,
    PolicyFileError,
    SurelistError,
)
from surelist.groups import equal_opportunity
from surelist.policy import Policy
from surelist.targets import Expected, PerPool, Recall

if TYPE_CHECKING:
    from surelist.estimator import ShortlistClassifier

__all__ = [
    "Expected",
    "GroupCutoffWarning",
    "GuaranteeCurve",
    "InvalidInput",
    "MissingDependency",
    "NotCertifiable",
    "PerPool",
    "Policy",
    "PolicyFileError",
    "Recall",
    "ShortlistClassifier",
    "SurelistError",
    "__version__",
    "baselines",
    "bounds",
    "calibrate",
    "equal_opportunity",
    "guarantee_curve",
]

_LATE = {"ShortlistClassifier": "surelist.estimator"}  # imported on first use: heavy extras


def __getattr__(name: str) -> Any:
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module 'surelist' has no attribute {name!r}")
