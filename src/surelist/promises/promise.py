"""What every promise answers, and what every proof does: the whole interface, on one page.

A *promise* is a small frozen value: what is asked for. Its *proof* is a small frozen value beside a
threshold: the numbers that the rule needed, which say the promise and its conditions in words and check
themselves when a file is read. One module of ``kinds`` holds one promise with its rules, proofs and words;
nobody else asks which kind a promise is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct

from surelist import _check as check
from surelist._files import Chance
from surelist._names import option
from surelist.errors import InvalidInput
from surelist.promises import phrases
from surelist.promises.conditions import Proved
from surelist.promises.options import checked, fields_of, required

if TYPE_CHECKING:
    from surelist._arrays import Floats, Ints
    from surelist.promises.curve import PromiseCurve
    from surelist.promises.evidence import Evidence, RowColumns
    from surelist.promises.judging import RowsSeen, ShareSeen
    from surelist.promises.state import Certificate, Certified, Cutoff, ExcessBound


# what a block needs, as shares: mean, variance, and the rates of pools with their weights, if any
BlockNeed = tuple[float, float, Any]


class About(Enum):
    """What a promise is about, which decides who may judge, watch or repeat it."""

    POPULATION = "population"  # candidates as they come, in the long run
    AVERAGE = "average"  # an average over whole pools, or of amounts, which nothing bounds
    POOL = "pool"  # single pools that are yet to come
    COLLECTION = "collection"  # these very candidates, of whom some were labelled
    THIS_POOL = "this pool"  # lists of the very pool that was given, on average over calibrations


class Needs(Enum):
    """What has to be read of calibration rows."""

    COUNTS = "counts"  # rows, qualified rows and order statistics: any engine answers that
    COLUMNS = "columns"  # every row, in memory
    POOLS = "pools"  # the qualified rows of whole pools


class Level(Struct, frozen=True):
    """How a promise is to be certified: rule, alpha, and alpha's split where a rule has two.

    ``calibration_share`` is the part of alpha spent on the calibration rows by ``pac`` and
    ``bernstein``; the rest is spent on the pool.
    """

    alpha: float
    rule: str = "exact"
    calibration_share: Chance = 0.5
    beside: float | None = None  # the level of others that hold together with it at alpha [theory: no-split]

    @property
    def calibration_alpha(self) -> float:
        return self.alpha * self.calibration_share

    @property
    def pool_alpha(self) -> float:
        return self.alpha - self.calibration_alpha


class Watched(Struct, frozen=True):
    """What reviews of pools can test: that the mean of trials is at least ``rate``.

    A trial is a candidate (1 = qualified and listed), with ``k`` a whole pool of at least ``smallest_pool``
    (1 = at least ``k`` of them), ``audited`` a qualified candidate, seen on the list (1) or in an audit (0).
    Of a policy with three lists, trials are those of ``drawn`` lists who were drawn for an audit of everyone:
    1 = qualified, with ``unqualified`` not qualified; ``audited`` those who are qualified, 1 = not on the
    last list. ``words`` say it after "at least 90% of".
    """

    rate: Fraction
    k: int | None = None
    smallest_pool: int = 0
    audited: bool = False
    part: str | None = None
    drawn: tuple[str, ...] = ()
    unqualified: bool = False
    words: str = ""


class PageChoice(Struct, frozen=True):
    """How a page offers a promise: what the choice sends, its title, and a sentence with fields to fill in.

    In a sentence ``{k:5|label}`` is a field of the promise that shows 5 at first,
    ``{precision=share:80|label}`` one that is typed under another name, ``{start?|label}`` one that may stay
    empty, and ``{k}`` repeats what was typed above. A choice stays, by its ``family``, where other columns
    are chosen. ``by_group`` are title and sentence where groups are promised something each.
    """

    name: str
    title: str
    words: str
    family: str = ""
    amounts: bool = False  # for labels that are amounts
    sets: dict[str, str] = {}  # fields that follow from the choice
    by_group: tuple[str, str] | None = None
    beside: str = ""  # another promise of the same list that can be asked for with it


class Kind(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """What files, flags and addresses tell apart by a name."""

    @property
    def kind(self) -> str:
        """That name."""
        return str(self.__struct_config__.tag)


class Promise(Kind, frozen=True):
    """What is promised. A kind overrides what differs; the defaults are those of most."""

    page: ClassVar[tuple[PageChoice, ...]] = ()  # what a person picks on the page; none: it is not there
    labelled: ClassVar[PageChoice | None] = None  # the same where the app draws whom to label
    help: ClassVar[str]  # what it says, in a line
    flags: ClassVar[tuple[tuple[str, str], ...]] = ()  # of the command line, and the field that each sets
    alias: ClassVar[str] = ""  # its name in few words, such as pool:3/100
    about: ClassVar[About] = About.POPULATION
    rules: ClassVar[tuple[str, ...]] = ("exact",)
    whole_pools: ClassVar[bool] = False  # pools, not rows, are the units of calibration
    others: ClassVar[Literal["refused", "shorter", "needed"]] = "refused"  # unlabelled scores
    # how a few labels of a collection are drawn for it
    sample: ClassVar[Literal["block", "control", "prefix", "triage"] | None] = None
    # true of a list exactly up to one threshold that the population fixes
    fixed_boundary: ClassVar[bool] = False
    joins_fixed: ClassVar[bool] = False  # has a joint level with promises that have a fixed boundary
    monotone: ClassVar[bool] = False  # whatever keeps it, a longer list keeps it as well
    longest: ClassVar[bool] = False  # a longer list that keeps it is the better one
    in_whole_pools: ClassVar[str] = ""  # the promise like it whose units are whole pools
    single_list: ClassVar[str] = ""  # what it does not say of one list
    needs_audit: ClassVar[bool] = False  # reviews of lists alone cannot show whether it holds
    # sets of conditions, each with its proof; others are refused
    proved_with: ClassVar[tuple[Proved, ...]] = ()
    # a row that counts as not qualified below some score makes lists longer at worst
    top_only: ClassVar[bool] = False
    planned: ClassVar[bool] = False  # how many labels it takes can be said beforehand
    paper_rule: ClassVar[str | None] = None  # the paper's rule, to compare a plan with
    three_ways: ClassVar[bool] = False  # its policy accepts, rejects, and leaves the rest to people
    fixed_size: ClassVar[bool] = False  # of this pool's best, as many as were fixed beforehand

    def __post_init__(self) -> None:
        for name, described in fields_of(type(self)).items():  # None is left out where it says nothing
            value = getattr(self, name)
            if value is not None or name in required(type(self)):
                check.set_value(self, name, checked(value, described.kind, name))

    @property
    def needs(self) -> Needs:
        return Needs.COLUMNS

    @property
    def every_label(self) -> bool:
        """Whether a missing label cannot count as not qualified."""
        return False

    @property
    def certified(self) -> tuple[str, str, bool]:
        """What a curve shows, in more and in fewer words, and whether that is a share."""
        return "Qualified, at least", "Qualified, at least", False

    @property
    def amounts(self) -> bool:
        """Whether labels are amounts instead of 0 and 1."""
        return False

    @property
    def by_rank(self) -> bool:
        """Whether a list is each pool's best by rank."""
        return False

    @property
    def one_threshold(self) -> bool:
        """Whether one threshold serves every pool, so that several promises can share one list."""
        return True

    @property
    def pool(self) -> float | None:
        """The number of candidates that a pool has at least, or on average; None where that is not said."""
        size = getattr(self, "pool_size", None)
        return None if size is None else float(size)

    @property
    def smallest_pool(self) -> int:
        """The pool size of the first threshold; 0 where one threshold serves every pool."""
        return 0

    @property
    def listed(self) -> tuple[float, float] | None:
        """How many of how many are listed, where that itself is asked for."""
        return None

    def describe(self) -> str:
        """What is asked for, in a few words."""
        raise NotImplementedError

    def certify(self, evidence: Evidence, level: Level, most: float = math.inf) -> Certified:
        """Thresholds and why they are enough, or ``NotCertifiable``.

        ``most`` is the highest threshold that other promises of the same list allow.
        """
        raise NotImplementedError

    def beside_fixed(self, fixed: Sequence[Promise], rows: int, level: Level) -> Level | None:
        """Its level together with promises of a fixed boundary, whose own level is ``beside`` in it
        [theory: no-split]; None where it has a share of alpha of its own.

        Only what is known before looking at scores and labels may decide it.
        """
        return None

    def block_count(self, size: int, block: int, drawn: int, alpha: float, known: int = 0) -> int:
        """Qualified ones needed among ``drawn`` of the best ``block`` of ``size`` candidates
        [theory: few-labels].

        ``known``: qualified ones of the collection that are known already and no part of the block.
        """
        raise NotImplementedError

    def block_need(self, size: int) -> BlockNeed:
        """Qualified ones that a list needs of ``size``, as shares: mean, variance, and the rates of pools."""
        raise NotImplementedError

    @property
    def rate(self) -> Fraction | None:
        """The share listed and qualified that is promised on average; None: something else is."""
        return None

    @property
    def kept_share(self) -> Fraction:
        """What labels of a collection have to show: the share of its qualified listed, or of the list."""
        raise NotImplementedError

    @property
    def right_share(self) -> Fraction:
        """Of those accepted the share to show qualified, where the rest of a collection has a promise too."""
        raise NotImplementedError

    def of_collection(self) -> Promise:
        """The promise that a labelling makes: of a range of pool sizes that of the smallest."""
        return self

    def held_in(self, size: int) -> float | None:
        """What the list of a pool of another size holds on average; None where nothing is said of it."""
        return None

    def needed(self, available: Ints) -> Ints:
        """For promises about pools: what the list must hold of a pool with so many qualified."""
        raise NotImplementedError

    def watched(self, policy: Certificate) -> tuple[Watched, ...]:
        """What a monitor tests of it; raises where nothing can be."""
        raise InvalidInput(
            "policy",
            f"promises like {self.describe()!r} cannot be watched. What can be: averages in pools of a known "
            "size, shares that are kept, triages"
            f"{option('rule', 'pac', before=', and numbers in every pool by ')}.",
        )

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        """What is promised, as the first half of a sentence."""
        raise NotImplementedError

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        """The claim as a person would repeat it; list lengths in it are estimates and say "about"."""
        raise NotImplementedError

    def shares_seen(self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen) -> tuple[ShareSeen, ...]:
        """For promises about a population: the shares that are tested on rows which it never saw."""
        raise NotImplementedError

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve | None:
        """What each list length would carry where a count decides."""
        return None

    def chance_short(self, cutoff: Cutoff, sizes: Ints, missed: int) -> float | None:
        """Where a count decides: P(as many of pools of these sizes fall short)."""
        return None

    def fewest_qualified(self, level: Level) -> int | None:
        """The fewest qualified rows that certify anything, where that is not the count of the threshold."""
        return None

    def excess(self, cutoff: Cutoff) -> ExcessBound | None:
        """How much more than asked for a list may hold; None: nothing is known."""
        return None

    @classmethod
    def estimated(cls, targets: Sequence[Any], qualified: Sequence[int]) -> bool:
        """Whether targets by group are what the qualified rows of each group give as an estimate."""
        return False

    def widened(self, within: float) -> Promise:
        """The promise that keeps this one while density ratios are wrong by a factor [theory: shift]."""
        raise InvalidInput("within", f"has no proof with a promise like {self.describe()!r}; leave it out.")


class Proof(Kind, frozen=True):
    """Why a threshold is enough: the numbers of one rule, and what they allow to be said.

    Methods are given the ``cutoff`` that the proof stands beside (promise, level, rows, thresholds) and the
    policy it is part of.
    """

    about: ClassVar[About | None] = None  # where it is not what the promise is about
    together: ClassVar[str | None] = None  # the subject of "wrong with probability", where it is another one
    counted: ClassVar[bool] = False  # nothing but a count of labelled rows decided the threshold
    work: ClassVar[str] = "calibration"  # what is done again and again in "1 of 10 ..."
    in_campaign: ClassVar[bool] = False  # the threshold changes at the campaign's next update
    drawn_labels: ClassVar[bool] = False  # only some rows have labels, by a draw
    unjudged: ClassVar[str] = ""  # why later rows cannot speak for or against it
    # beside rows and labels
    rests_on: ClassVar[str | None] = "scores of other candidates, or a sample of labels"
    # a threshold for each pool size, with ties broken where that was asked for
    many_steps: ClassVar[bool] = False
    uses_alpha: ClassVar[bool] = True  # False where it is true on average, and never by a chance of error
    estimated_from: ClassVar[str] = "the calibration rows"  # where the length of lists is estimated from
    drawn_by: ClassVar[str] = "rows that came by chance"  # what the promise is worked out from

    @property
    def collection_size(self) -> int | None:
        """The candidates that it is about, where these are known one by one."""
        return None

    @property
    def looked_from(self) -> float | None:
        """The score from which on people look at candidates who are not listed; None where nobody does."""
        return None

    def claim(self, cutoff: Cutoff, policy: Certificate) -> str:
        """What is promised, as the first half of a sentence."""
        return cutoff.target.claim(cutoff, policy)

    def wrong(self, cutoff: Cutoff, policy: Certificate) -> str:
        """How often that may be wrong, as the second half."""
        alpha = phrases.percent(policy.alpha)
        return f"wrong with probability at most {alpha} over {self.over(cutoff, policy)}"

    def over(self, cutoff: Cutoff, policy: Certificate) -> str:
        """What the chance of that is over."""
        return f"the draw of the {phrases.counted(cutoff.rows, 'calibration row')}"

    def conditions(self, cutoff: Cutoff, policy: Certificate) -> tuple[str, ...]:
        """What the promise rests on."""
        return phrases.common_conditions(policy.alpha, *self.of_the_rule(cutoff))

    def of_the_rule(self, cutoff: Cutoff) -> tuple[str, ...]:
        """What its rule rests on, beside what every promise does."""
        raise NotImplementedError

    def evidence(self, cutoff: Cutoff) -> str:
        """One line for a person who wants to know why."""
        raise NotImplementedError

    def check(self, cutoff: Cutoff) -> None:
        """Raise PolicyFileError where the numbers contradict one another."""
        raise NotImplementedError

    def plainly(self, cutoff: Cutoff, policy: Certificate) -> str:
        """The claim as a person would repeat it."""
        return cutoff.target.plainly(cutoff, policy)

    def sure(self, policy: Certificate) -> str | None:
        """How sure that is, as a person would repeat it; None: as every promise of its kind."""
        return None

    def whom(self, policy: Certificate) -> str | None:
        """Whom it is about, where that is not everyone who comes as the calibration rows came."""
        return None

    def curve(self, cutoff: Cutoff, rows: RowColumns) -> PromiseCurve | None:
        """What each list length would carry, each point for a promise fixed beforehand."""
        return cutoff.target.curve(cutoff, rows) if self.counted else None

    def is_of(self, scores: Floats) -> bool:
        """For promises about one pool: whether these are its scores, in any order."""
        raise NotImplementedError

    def shares_seen(self, cutoff: Cutoff, policy: Certificate, seen: RowsSeen) -> tuple[ShareSeen, ...]:
        """The shares that are tested on rows which it never saw."""
        return cutoff.target.shares_seen(cutoff, policy, seen)

    def chance_short(self, cutoff: Cutoff, sizes: Ints, missed: int) -> float | None:
        """For promises about pools: P(as many of pools of these sizes fall short); None: not known."""
        return cutoff.target.chance_short(cutoff, sizes, missed) if self.counted else None
