"""One score from several: the mean of ranks among unlabelled scores."""

import json

import numpy as np
import pytest

import surelist as sl
from surelist.promises.mean_rank import KNOTS


def columns(rng, rows):
    base = rng.standard_normal(rows)
    return {"a": base + rng.standard_normal(rows), "b": 100 * (base + rng.standard_normal(rows))}


@pytest.fixture(scope="module")
def ranks():
    return sl.mean_rank(columns(np.random.default_rng(0), 2_000))


def test_it_is_the_mean_of_the_shares_below_half_of_the_ties_with_them():
    unlabelled = {"a": [1.0, 2.0, 2.0, 5.0], "b": [10.0, 30.0, 20.0, 40.0]}
    made = sl.mean_rank(unlabelled)
    by_a = {1.0: 0.125, 2.0: 0.5, 5.0: 0.875}
    by_b = {10.0: 0.125, 20.0: 0.375, 30.0: 0.625, 40.0: 0.875}
    for a, first in by_a.items():
        for b, second in by_b.items():
            assert made({"a": [a], "b": [b]})[0] == pytest.approx((first + second) / 2, abs=1e-15)


def test_the_order_of_names_and_a_rising_change_of_a_score_change_nothing(ranks):
    rng = np.random.default_rng(1)
    unlabelled, pool = columns(rng, 500), columns(rng, 50)
    plain = sl.mean_rank(unlabelled)(pool)
    turned = sl.mean_rank(dict(reversed(unlabelled.items())))(pool)
    assert np.allclose(plain, turned, rtol=0, atol=1e-15)
    cubed = sl.mean_rank({**unlabelled, "a": 2 * unlabelled["a"] + 1})({**pool, "a": 2 * pool["a"] + 1})
    assert np.allclose(plain, cubed, rtol=0, atol=1e-12)


def test_many_scores_are_kept_as_some_thousands():
    rng = np.random.default_rng(2)
    unlabelled, pool = columns(rng, 50_000), columns(rng, 200)
    made = sl.mean_rank(unlabelled)
    assert all(len(each.scores) == KNOTS for each in made.columns.values())
    exact = np.mean(
        [np.searchsorted(np.sort(unlabelled[name]), pool[name]) / 50_000 for name in pool], axis=0
    )
    assert np.abs(made(pool) - exact).max() < 2 / KNOTS


def test_a_file_holds_it_to_the_last_bit(ranks, tmp_path):
    pool = columns(np.random.default_rng(3), 50)
    ranks.save(tmp_path / "ranks.json")
    assert np.array_equal(sl.MeanRank.load(tmp_path / "ranks.json")(pool), ranks(pool))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda raw: raw["columns"]["a"]["shares"].reverse(), "do not rise"),
        (lambda raw: raw["columns"]["a"]["scores"].pop(), "do not rise"),
        *(
            (
                lambda raw, at=at, share=share: raw["columns"]["a"]["shares"].__setitem__(at, share),
                "between 0 and 1",
            )
            for at, share in ((0, 0.0), (0, -0.5), (-1, 1.0))
        ),
        (lambda raw: raw["columns"].pop("a"), "two columns"),
        (lambda raw: raw.update(format=2), "format version 2"),
        (lambda raw: raw.update(kind="policy"), "not a mean-rank file"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(ranks, tmp_path, change, problem):
    path = tmp_path / "ranks.json"
    ranks.save(path)
    raw = json.loads(path.read_text())
    change(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(sl.PolicyFileError, match=problem):
        sl.MeanRank.load(path)


def test_the_scores_that_it_was_made_from_are_refused_in_any_order():
    unlabelled = columns(np.random.default_rng(4), 300)
    made = sl.mean_rank(unlabelled)
    turned = np.random.default_rng(5).permutation(300)
    with pytest.raises(sl.InvalidInput, match="made from"):
        made({name: column[turned] for name, column in unlabelled.items()})


@pytest.mark.parametrize("rows", [300, 3 * KNOTS])
def test_some_of_the_scores_that_it_was_made_from_are_refused_too(rows):
    rng = np.random.default_rng(6)
    unlabelled, others = columns(rng, rows), columns(rng, rows)
    made = sl.mean_rank(unlabelled)
    part = {name: np.concatenate([others[name], column[: rows // 3]]) for name, column in unlabelled.items()}
    for given in (part, {name: column[: rows // 3] for name, column in unlabelled.items()}):
        with pytest.raises(sl.InvalidInput, match="made from"):
            made(given)
    assert len(made(others)) == rows
    coarse = sl.mean_rank({name: column.round(1) for name, column in unlabelled.items()})
    assert len(coarse({name: column.round(1) for name, column in others.items()})) == rows  # ties are no sign


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ({"a": [1.0]}, "expected the columns a, b"),
        ({"a": [1.0], "b": [1.0], "c": [1.0]}, "expected the columns a, b"),
        ({"a": [1.0, 2.0], "b": [1.0]}, "scores of 'b'"),
        ({"a": [1.0, np.nan], "b": [1.0, 2.0]}, "finite"),
        ([1.0, 2.0], "mapping of name to scores"),
    ],
)
def test_what_does_not_fit_is_said(ranks, scores, problem):
    with pytest.raises(sl.InvalidInput, match=problem):
        ranks(scores)


def test_one_score_is_no_several():
    with pytest.raises(sl.InvalidInput, match="two scores or more"):
        sl.mean_rank({"a": [1.0, 2.0]})
