"""The public names and their types; ``__init__.py`` imports each when it is first used."""

from surelist import bounds as bounds
from surelist._version import __version__ as __version__
from surelist.errors import (
    GroupCutoffWarning as GroupCutoffWarning,
    InvalidInput as InvalidInput,
    MissingDependency as MissingDependency,
    NestedFitWarning as NestedFitWarning,
    NotCertifiable as NotCertifiable,
    PolicyFileError as PolicyFileError,
    PoolWarning as PoolWarning,
    ScoreWarning as ScoreWarning,
    SurelistError as SurelistError,
    TableWarning as TableWarning,
)
from surelist.estimator import ShortlistClassifier as ShortlistClassifier
from surelist.lifecycle.campaign import Campaign as Campaign
from surelist.lifecycle.drift import Drift as Drift, drift as drift
from surelist.lifecycle.labelling import Labelling as Labelling
from surelist.lifecycle.labelling_start import judge_scores as judge_scores
from surelist.lifecycle.monitor import Monitor as Monitor
from surelist.lifecycle.plan import Plan as Plan
from surelist.lifecycle.planning import plan as plan
from surelist.lifecycle.stopping import StopTest as StopTest
from surelist.lifecycle.validation import Validation as Validation
from surelist.promises.calibrate import calibrate as calibrate
from surelist.promises.conditions import Groups as Groups, Hash as Hash, merge_groups as merge_groups
from surelist.promises.curve import GuaranteeCurve as GuaranteeCurve, guarantee_curve as guarantee_curve
from surelist.promises.evaluation import Evaluation as Evaluation, evaluate as evaluate
from surelist.promises.kinds.at_least import AtLeast as AtLeast
from surelist.promises.kinds.betting import PoolAverage as PoolAverage, Value as Value
from surelist.promises.kinds.budget import Budget as Budget
from surelist.promises.kinds.expected import Expected as Expected, equal_opportunity as equal_opportunity
from surelist.promises.kinds.false_share import FalseShare as FalseShare
from surelist.promises.kinds.next_pool import NextPool as NextPool
from surelist.promises.kinds.per_pool import PerPool as PerPool
from surelist.promises.kinds.precision import Precision as Precision
from surelist.promises.kinds.recall import Recall as Recall
from surelist.promises.kinds.this_list import (
    ListCurve as ListCurve,
    ThisList as ThisList,
    list_curve as list_curve,
)
from surelist.promises.kinds.triage import Triage as Triage
from surelist.promises.mean_rank import MeanRank as MeanRank, mean_rank as mean_rank
from surelist.promises.policy import Policy as Policy
from surelist.promises.sampled import NoisyLabels as NoisyLabels, SampledLabels as SampledLabels
from surelist.promises.shift import DensityRatio as DensityRatio
from surelist.workflows.label_tables import label_table as label_table
from surelist.workflows.selection import select_table as select_table
from surelist.workflows.source import Read as Read
from surelist.workflows.tables import (
    calibrate_table as calibrate_table,
    evaluate_table as evaluate_table,
    read_table as read_table,
)

__all__: list[str]
