"""surelist: shortlists with a proof.

Names are imported when they are first used, so that ``import surelist`` costs next to nothing; their
types are in ``__init__.pyi``.
"""

from importlib import import_module
from typing import Any

from surelist._version import __version__

# public names by the module that they live in
_NAMES = {
    "errors": (
        "GroupCutoffWarning InvalidInput MissingDependency NestedFitWarning NotCertifiable PolicyFileError "
        "PoolWarning ScoreWarning SurelistError TableWarning"
    ),
    "estimator": "ShortlistClassifier",
    "lifecycle.campaign": "Campaign",
    "lifecycle.drift": "Drift drift",
    "lifecycle.labelling": "Labelling",
    "lifecycle.labelling_start": "judge_scores",
    "lifecycle.monitor": "Monitor",
    "lifecycle.plan": "Plan",
    "lifecycle.planning": "plan",
    "lifecycle.stopping": "StopTest",
    "lifecycle.validation": "Validation",
    "promises.calibrate": "calibrate",
    "promises.conditions": "Groups Hash merge_groups",
    "promises.curve": "GuaranteeCurve guarantee_curve",
    "promises.evaluation": "Evaluation evaluate",
    "promises.kinds.at_least": "AtLeast",
    "promises.kinds.betting": "PoolAverage Value",
    "promises.kinds.budget": "Budget",
    "promises.kinds.expected": "Expected equal_opportunity",
    "promises.kinds.false_share": "FalseShare",
    "promises.kinds.next_pool": "NextPool",
    "promises.kinds.per_pool": "PerPool",
    "promises.kinds.precision": "Precision",
    "promises.kinds.recall": "Recall",
    "promises.kinds.this_list": "ListCurve ThisList list_curve",
    "promises.kinds.triage": "Triage",
    "promises.mean_rank": "MeanRank mean_rank",
    "promises.policy": "Policy",
    "promises.sampled": "NoisyLabels SampledLabels",
    "promises.shift": "DensityRatio",
    "workflows.label_tables": "label_table",
    "workflows.selection": "select_table",
    "workflows.source": "Read",
    "workflows.tables": "calibrate_table evaluate_table read_table",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = ["__version__", "bounds", *sorted(_MODULES)]


def __getattr__(name: str) -> Any:
    if name == "bounds":
        return import_module("surelist.bounds")
    if name not in _MODULES:
        raise AttributeError(f"module 'surelist' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"surelist.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
