"""surelist: shortlists with a proof.

Names are imported when they are first used, so that ``import surelist`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surelist._version import __version__

if TYPE_CHECKING:
    from surelist import baselines, bounds
    from surelist.adaptive import Campaign
    from surelist.calibration import calibrate
    from surelist.curve import GuaranteeCurve, guarantee_curve
    from surelist.drifting import Drift, drift
    from surelist.errors import (
        GroupCutoffWarning,
        InvalidInput,
        MissingDependency,
        NotCertifiable,
        PolicyFileError,
        SurelistError,
        TableWarning,
    )
    from surelist.estimator import ShortlistClassifier
    from surelist.groups import equal_opportunity
    from surelist.monitoring import Monitor
    from surelist.planning import Plan, plan
    from surelist.policy import Policy
    from surelist.targets import Expected, PerPool, Recall
    from surelist.workflows import calibrate_table, select_table

__all__ = [
    "Campaign",
    "Drift",
    "Expected",
    "GroupCutoffWarning",
    "GuaranteeCurve",
    "InvalidInput",
    "MissingDependency",
    "Monitor",
    "NotCertifiable",
    "PerPool",
    "Plan",
    "Policy",
    "PolicyFileError",
    "Recall",
    "ShortlistClassifier",
    "SurelistError",
    "TableWarning",
    "__version__",
    "baselines",
    "bounds",
    "calibrate",
    "calibrate_table",
    "drift",
    "equal_opportunity",
    "guarantee_curve",
    "plan",
    "select_table",
]

# public name: the module it lives in
_LATE = {
    "Campaign": "adaptive",
    "Drift": "drifting",
    "Expected": "targets",
    "GroupCutoffWarning": "errors",
    "GuaranteeCurve": "curve",
    "InvalidInput": "errors",
    "MissingDependency": "errors",
    "Monitor": "monitoring",
    "NotCertifiable": "errors",
    "PerPool": "targets",
    "Plan": "planning",
    "Policy": "policy",
    "PolicyFileError": "errors",
    "Recall": "targets",
    "ShortlistClassifier": "estimator",
    "SurelistError": "errors",
    "TableWarning": "errors",
    "calibrate": "calibration",
    "calibrate_table": "workflows",
    "drift": "drifting",
    "equal_opportunity": "groups",
    "guarantee_curve": "curve",
    "plan": "planning",
    "select_table": "workflows",
}


def __getattr__(name: str) -> Any:
    if name in ("baselines", "bounds"):
        return import_module(f"surelist.{name}")
    if name not in _LATE:
        raise AttributeError(f"module 'surelist' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"surelist.{_LATE[name]}"), name)
    return found


def __dir__() -> list[str]:
    return __all__
