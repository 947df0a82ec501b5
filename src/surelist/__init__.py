"""surelist: shortlists with a proof.

Names are imported when they are first used, so that ``import surelist`` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from surelist._version import __version__

if TYPE_CHECKING:
    from surelist import baselines, bounds
    from surelist.errors import (
        GroupCutoffWarning,
        InvalidInput,
        MissingDependency,
        NestedFitWarning,
        NotCertifiable,
        PolicyFileError,
        PoolWarning,
        ScoreWarning,
        SurelistError,
        TableWarning,
    )
    from surelist.estimator import ShortlistClassifier
    from surelist.lifecycle.campaign import Campaign
    from surelist.lifecycle.drift import Drift, drift
    from surelist.lifecycle.labelling import Labelling
    from surelist.lifecycle.monitor import Monitor
    from surelist.lifecycle.plan import Plan
    from surelist.lifecycle.planning import plan
    from surelist.lifecycle.stopping import StopTest
    from surelist.promises.calibrate import calibrate
    from surelist.promises.conditions import Groups, Hash
    from surelist.promises.curve import GuaranteeCurve, guarantee_curve
    from surelist.promises.evaluation import Evaluation, evaluate
    from surelist.promises.groups import merge_groups
    from surelist.promises.kinds.at_least import AtLeast
    from surelist.promises.kinds.budget import Budget
    from surelist.promises.kinds.expected import Expected
    from surelist.promises.kinds.expected.by_group import equal_opportunity
    from surelist.promises.kinds.false_share import FalseShare
    from surelist.promises.kinds.next_pool import NextPool
    from surelist.promises.kinds.per_pool import PerPool
    from surelist.promises.kinds.pool_average import PoolAverage
    from surelist.promises.kinds.precision import Precision
    from surelist.promises.kinds.recall import Recall
    from surelist.promises.kinds.value import Value
    from surelist.promises.mean_rank import MeanRank, mean_rank
    from surelist.promises.policy import Policy
    from surelist.promises.sampled import NoisyLabels, SampledLabels
    from surelist.promises.shift import DensityRatio
    from surelist.workflows.label_tables import label_table
    from surelist.workflows.selection import select_table
    from surelist.workflows.source import Read
    from surelist.workflows.tables import calibrate_table, evaluate_table, read_table

__all__ = [
    "AtLeast",
    "Budget",
    "Campaign",
    "DensityRatio",
    "Drift",
    "Evaluation",
    "Expected",
    "FalseShare",
    "GroupCutoffWarning",
    "Groups",
    "GuaranteeCurve",
    "Hash",
    "InvalidInput",
    "Labelling",
    "MeanRank",
    "MissingDependency",
    "Monitor",
    "NestedFitWarning",
    "NextPool",
    "NoisyLabels",
    "NotCertifiable",
    "PerPool",
    "Plan",
    "Policy",
    "PolicyFileError",
    "PoolAverage",
    "PoolWarning",
    "Precision",
    "Read",
    "Recall",
    "SampledLabels",
    "ScoreWarning",
    "ShortlistClassifier",
    "StopTest",
    "SurelistError",
    "TableWarning",
    "Value",
    "__version__",
    "baselines",
    "bounds",
    "calibrate",
    "calibrate_table",
    "drift",
    "equal_opportunity",
    "evaluate",
    "evaluate_table",
    "guarantee_curve",
    "label_table",
    "mean_rank",
    "merge_groups",
    "plan",
    "read_table",
    "select_table",
]

# public name: the module it lives in
_LATE = {
    "Evaluation": "promises.evaluation",
    "evaluate": "promises.evaluation",
    "evaluate_table": "workflows.tables",
    "AtLeast": "promises.kinds.at_least",
    "Budget": "promises.kinds.budget",
    "DensityRatio": "promises.shift",
    "PoolWarning": "errors",
    "Precision": "promises.kinds.precision",
    "SampledLabels": "promises.sampled",
    "Campaign": "lifecycle.campaign",
    "Drift": "lifecycle.drift",
    "Expected": "promises.kinds.expected",
    "GroupCutoffWarning": "errors",
    "GuaranteeCurve": "promises.curve",
    "InvalidInput": "errors",
    "Labelling": "lifecycle.labelling",
    "MissingDependency": "errors",
    "Monitor": "lifecycle.monitor",
    "NestedFitWarning": "errors",
    "NotCertifiable": "errors",
    "PerPool": "promises.kinds.per_pool",
    "Plan": "lifecycle.plan",
    "Policy": "promises.policy",
    "PolicyFileError": "errors",
    "Recall": "promises.kinds.recall",
    "ShortlistClassifier": "estimator",
    "StopTest": "lifecycle.stopping",
    "SurelistError": "errors",
    "ScoreWarning": "errors",
    "TableWarning": "errors",
    "calibrate": "promises.calibrate",
    "FalseShare": "promises.kinds.false_share",
    "Groups": "promises.conditions",
    "Hash": "promises.conditions",
    "NextPool": "promises.kinds.next_pool",
    "NoisyLabels": "promises.sampled",
    "PoolAverage": "promises.kinds.pool_average",
    "Value": "promises.kinds.value",
    "calibrate_table": "workflows.tables",
    "drift": "lifecycle.drift",
    "equal_opportunity": "promises.kinds.expected.by_group",
    "guarantee_curve": "promises.curve",
    "label_table": "workflows.label_tables",
    "MeanRank": "promises.mean_rank",
    "mean_rank": "promises.mean_rank",
    "merge_groups": "promises.groups",
    "plan": "lifecycle.planning",
    "Read": "workflows.source",
    "read_table": "workflows.tables",
    "select_table": "workflows.selection",
}


def __getattr__(name: str) -> Any:
    if name in ("baselines", "bounds"):
        return import_module(f"surelist.{name}")
    if name not in _LATE:
        raise AttributeError(f"module 'surelist' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"surelist.{_LATE[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
