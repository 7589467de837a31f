"""Chains that disagree are named; chains that agree are left in peace."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from permix.cli.fit_tables import chains_report
from permix.convergence import largest_allowed, noise_ceiling, r_hat
from permix.errors import ConvergenceWarning, DataError
from permix.posterior import summary, to_datatree, warn_if_chains_disagree
from permix.posterior.diagnostics import verdict_on
from permix.reporting.verdicts import of_chains
from permix.sampling import Draws


def tree_of(**arrays: np.ndarray):
    return to_datatree(Draws(arrays, n_draws=next(iter(arrays.values())).shape[1]))


def reference_r_hat(values: np.ndarray) -> float:
    """Rank-normalized split R-hat by the formulas of Vehtari et al. (2021), section 4."""

    def plain(x: np.ndarray) -> float:
        n = x.shape[1]
        between, within = n * x.mean(axis=1).var(ddof=1), x.var(axis=1, ddof=1).mean()
        return math.sqrt((n - 1) / n + between / (n * within))

    def normal_scores(x: np.ndarray) -> np.ndarray:
        ranks = stats.rankdata(x, method="average").reshape(x.shape)
        return stats.norm.ppf((ranks - 3 / 8) / (x.size + 1 / 4))

    if len(values) == 1:  # its halves count as chains
        values = values.reshape(2, -1)
    half = values.shape[1] // 2
    split = np.concatenate([values[:, :half], values[:, -half:]])
    folded = np.abs(split - np.median(split))
    return max(plain(normal_scores(split)), plain(normal_scores(folded)))


@pytest.mark.parametrize(("n_chains", "n_draws"), [(1, 40), (2, 50), (4, 101), (3, 1000)])
def test_r_hat_is_the_published_one(n_chains: int, n_draws: int) -> None:
    rng = np.random.default_rng(n_draws)
    values = rng.standard_t(2, size=(n_chains, n_draws)) + np.arange(n_chains)[:, None] * 0.3
    assert r_hat(values) == pytest.approx(reference_r_hat(values), rel=1e-9)


def test_different_means_warn_by_name() -> None:
    rng = np.random.default_rng(1)
    good = rng.normal(size=(2, 400))
    tree = tree_of(log_joint=good + np.array([[0.0], [2.0]]), n_groups=rng.poisson(5, size=(2, 400)))
    with pytest.warns(ConvergenceWarning, match=r"chains disagree on log_joint \(R-hat 1\.\d+\)") as caught:
        named = warn_if_chains_disagree(tree)
    assert list(named) == ["log_joint"]
    message = str(caught[0].message)
    assert "n_groups" not in message
    assert "longer burn-in" in message
    assert "more draws" in message
    assert len(caught) == 1


def test_different_spread_warns() -> None:
    rng = np.random.default_rng(2)
    tree = tree_of(x=rng.normal(size=(2, 400)) * np.array([[1.0], [4.0]]))
    with pytest.warns(ConvergenceWarning, match="x "):
        warn_if_chains_disagree(tree)


def test_drift_within_one_chain_warns() -> None:
    drift = np.random.default_rng(3).normal(size=(1, 400)) + np.linspace(0, 5, 400)
    with pytest.warns(ConvergenceWarning, match="parts of the chain disagree on x"):
        warn_if_chains_disagree(tree_of(x=drift))


def test_chains_stuck_at_different_values_warn() -> None:
    with pytest.warns(ConvergenceWarning, match=r"k \(R-hat inf\)"):
        warn_if_chains_disagree(tree_of(k=np.repeat([[3], [4]], 50, axis=1)))


def quiet(tree) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return warn_if_chains_disagree(tree) == {}


def test_good_chains_do_not_warn() -> None:
    rng = np.random.default_rng(4)
    tree = tree_of(
        x=rng.normal(size=(4, 1000)),
        heavy=rng.standard_cauchy(size=(4, 1000)),
        k=rng.poisson(4, size=(4, 1000)),
        concentration=np.full((4, 1000), 1.5),
        labels=rng.integers(0, 3, size=(4, 1000, 6)),
    )
    assert quiet(tree)


@pytest.mark.parametrize("n_draws", [1, 2, 3])
def test_too_few_draws_say_nothing(n_draws: int) -> None:
    tree = tree_of(x=np.arange(2.0 * n_draws).reshape(2, n_draws))
    assert quiet(tree)
    assert summary(tree).loc["x", "note"] == "too few draws"


@pytest.mark.parametrize(("n_chains", "n_draws"), [(1, 12), (2, 4), (2, 20), (4, 60)])
def test_few_good_draws_rarely_warn_and_bad_ones_still_do(n_chains: int, n_draws: int) -> None:
    """1000 runs, false-alarm probability about 0.001 for each of bulk and tail; 12 is beyond six sigma.

    (Ranks bound the scores, so few draws alarm less than normal ones would.)
    """
    rng = np.random.default_rng(n_draws)
    ceiling = largest_allowed(np.zeros((n_chains, n_draws)))
    alarms = sum(r_hat(rng.normal(size=(n_chains, n_draws))) > ceiling for _ in range(1000))
    assert alarms <= 12
    if n_draws >= 20:
        apart = rng.normal(size=(n_chains, n_draws)) + 5.0 * np.arange(n_chains)[:, None]
        assert r_hat(apart) > ceiling


def test_noise_ceiling_is_the_distribution_of_r_hat_for_independent_draws() -> None:
    """Plain R-hat of normal draws exceeds it with probability 0.001: 20,000 runs, 20 ± 4.5 expected."""
    rng = np.random.default_rng(6)
    m, n = 4, 15
    x = rng.normal(size=(20_000, m, n))
    between, within = n * x.mean(axis=2).var(axis=1, ddof=1), x.var(axis=2, ddof=1).mean(axis=1)
    values = np.sqrt((n - 1) / n + between / (n * within))
    exceeding = np.sum(values > noise_ceiling(m // 2, 2 * n))
    assert 2 <= exceeding <= 42


def test_summary_columns_and_values() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(3.0, 2.0, size=(4, 500))
    table = summary(
        tree_of(x=x, k=rng.poisson(4, size=(4, 500)), labels=rng.integers(0, 3, size=(4, 500, 6)))
    )
    assert list(table.index) == ["x", "k"]
    row = table.loc["x"]
    assert row["mean"] == pytest.approx(x.mean())
    assert row["sd"] == pytest.approx(x.std(ddof=1))
    assert row["eti89_lb"] == pytest.approx(np.quantile(x, 0.055))
    assert row["eti89_ub"] == pytest.approx(np.quantile(x, 0.945))
    # 2000 independent draws: ESS is near 2000 and the error of the mean near sd / sqrt(2000).
    assert 1400 < row["ess_bulk"] < 2800
    assert 1200 < row["ess_tail"] < 2800
    assert row["mcse_mean"] == pytest.approx(2.0 / math.sqrt(2000), rel=0.25)
    assert row["r_hat"] == pytest.approx(1.0, abs=0.01)
    assert row["note"] == ""


def test_summary_notes() -> None:
    rng = np.random.default_rng(7)
    bad = rng.normal(size=(2, 100))
    tree = tree_of(
        concentration=np.ones((2, 100)),
        stuck=np.repeat([[3.0], [4.0]], 100, axis=1),
        infinite=np.where(bad > 2, -np.inf, bad),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = summary(tree)
    assert table["note"].to_dict() == {
        "concentration": "constant",
        "stuck": "chains disagree",
        "infinite": "not finite",
    }
    assert table.loc["concentration", ["mean", "sd", "eti89_lb", "mcse_mean"]].tolist() == [
        1.0,
        0.0,
        1.0,
        0.0,
    ]
    assert table.loc["stuck", "r_hat"] == math.inf
    assert table.loc["stuck", "ess_bulk"] < 5


def test_reports_say_what_the_warning_says() -> None:
    """Whatever is warned of stands before all else in a report, in the same words."""
    rng = np.random.default_rng(9)
    apart = rng.normal(size=(2, 200)) + np.array([[0.0], [0.7]])
    draws = Draws({"near": rng.normal(size=(2, 200)), "apart": apart})
    with pytest.warns(ConvergenceWarning) as told:
        found = warn_if_chains_disagree(draws)
    assert 1.05 < found["apart"] < 1.5
    said = chains_report(draws)["verdict"]
    assert said == f"NOT CONVERGED. {told[0].message.args[0].as_options()}"
    assert of_chains(draws) == ("bad", said)
    assert "apart (R-hat" in said
    assert "near" not in said
    level, said = of_chains(Draws({"near": draws.arrays["near"]}))
    assert level == "good"
    assert said.startswith("Converged: the 2 chains agree (R-hat at most 1.0")


@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
def test_rounding_errors_are_no_disagreement(size: float) -> None:
    rng = np.random.default_rng(8)
    values = np.where(rng.random((2, 500)) < 0.1, -3.0, -2.0) * size
    came_differently = values * (1.0 + np.array([[0.0], [1e-13]]))
    table = summary(tree_of(log_likelihood=came_differently))
    assert table.loc["log_likelihood", "note"] == ""
    assert r_hat(came_differently) > 1.5  # what ranks alone would say


def test_summary_of_chosen_quantities() -> None:
    tree = tree_of(a=np.zeros((2, 5)), b=np.ones((2, 5)), labels=np.zeros((2, 5, 3), int))
    assert list(summary(tree, ["b"]).index) == ["b"]
    with pytest.raises(DataError, match="'labels' is not one number per draw; there are: a, b"):
        summary(tree, ["labels"])


def test_draws_that_are_not_precise_enough_do_not_suffice() -> None:
    rng = np.random.default_rng(3)
    found = verdict_on(Draws({"few": rng.normal(size=(2, 80))}, n_draws=80, ended="enough"))
    said = found.message.as_options()
    assert said.startswith("Nearly converged: ")
    assert "suffice" not in said
    assert said.endswith("They ended after 80 draws each.")
    good = verdict_on(Draws({"good": rng.normal(size=(2, 500))}, n_draws=500, ended="enough"))
    assert good.message.as_options().endswith("They ended after 500 draws each, which suffice.")
