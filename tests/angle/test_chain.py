"""Gibbs chains of angle-based models, by enumeration of all completions and integration of the parameters.

One data set at four items has every pattern of missing items: top lists and rankings of a subset of every
length. Chains that are broken on purpose are found out by the same comparison.
"""

from __future__ import annotations

import signal
import warnings
from functools import cache

import numpy as np
import pytest
from scipy import optimize

from permix import AngleMixture, Rankings
from permix.angle import components as angle_components
from permix.angle.components import AngleComponents, largest_concentration
from permix.angle.data import AngleData
from permix.angle.gibbs import moves as angle_moves
from permix.angle.gibbs import state as angle_state
from permix.angle.gibbs.moves import Allocation, gibbs_sweep
from permix.angle.gibbs.state import AngleChainModel, AngleState, shares_by_sweeps
from permix.angle.parameters import AngleParameters
from permix.angle.rows import row_probabilities
from permix.errors import DataError, PermixWarning
from permix.sampling.loop import run_chains
from tests.every_run import first_in_every_run
from tests.oracles import angle as oracle

# Top lists and subset rankings of 1 to 4 items; items left out vary, so that every item is missing somewhere.
ROWS: tuple[oracle.Row, ...] = (
    ((0, 1, 2, 3), True),
    ((1, 0, 3, 2), False),
    ((0,), True),
    ((3,), False),
    ((1, 3), True),
    ((0, 2), False),
    ((3, 1), False),
    ((2, 1, 0), True),
    ((0, 3, 1), False),
    ((1, 2, 3), False),
    ((0, 2, 3), False),
)
PRIOR = oracle.Prior(2.0, 0.5)
WEAK = oracle.Prior(1.0, 1e-3, cap=largest_concentration(4))
PULLED = oracle.Prior(2.0, 0.5, 3.0, (0.5, 0.5, -0.5, -0.5))


def rankings_of(rows, t=4):
    return Rankings.from_orders(
        [list(listed) for listed, _ in rows],
        n_items=t,
        unlisted=["below" if below else "unknown" for _, below in rows],
    )


def settings_of(inference, normalizer, prior=PRIOR, **options):
    return AngleParameters(
        **(
            {
                "inference": inference,
                "normalizer": normalizer,
                "prior_shape": prior.shape,
                "prior_rate": prior.rate,
                "prior_strength": prior.strength,
                "prior_direction": prior.direction,
                "n_jobs": 1,
                "progress": False,
            }
            | options
        )
    )


def start_of(k, t, normalizer):
    directions = np.array([np.roll(oracle.scores(t), g) for g in range(k)])
    return AngleComponents(tuple(range(t)), np.full(k, 1 / k), directions, np.ones(k), normalizer)


def state_of(rows, settings, rng, t=4):
    model = AngleChainModel(AngleData(rankings_of(rows, t), 1), settings)
    return AngleState(model, rng, start_of(settings.n_components, t, model.normalizer))


def run(rows, settings, n_draws=1800, seed=0, t=4):
    rng = np.random.default_rng(seed)
    state, move = state_of(rows, settings, rng, t), gibbs_sweep(settings, t)
    kappas, directions = np.empty(n_draws), np.empty((n_draws, t))
    for draw in range(-100, n_draws):
        move.step(rng, state)
        kappas[draw], directions[draw] = state.kappas[0], state.directions[0]
    return kappas, directions


@cache
def grid_of(normalizer, prior=PRIOR, rows=ROWS, t=4):
    return oracle.Grid(t, rows, prior, normalizer, low=1e-2, high=40.0, n_kappa=90, n_sphere=32)


def test_the_data_have_every_pattern():
    for below in (False, True):
        assert {len(listed) for listed, how in ROWS if how is below} == {1, 2, 3, 4}
    for item in range(4):
        assert any(item not in listed for listed, below in ROWS if not below)
        assert any(item not in listed for listed, below in ROWS if below)


@pytest.mark.parametrize(
    ("inference", "normalizer", "prior"),
    first_in_every_run(
        [
            ("quadrature", "vmf", WEAK),
            ("sir", "exact", PULLED),
            ("sir", "vmf", PRIOR),
            ("quadrature", "vmf", PRIOR),
            ("quadrature", "vmf", PULLED),
            ("sir", "exact", PRIOR),
        ],
        2,
    ),
)
def test_completions_and_parameters_have_the_posterior(inference, normalizer, prior):
    kappas, directions = run(ROWS, settings_of(inference, normalizer, prior))
    moments = grid_of(normalizer, prior).moments
    assert oracle.worst_z(kappas, directions, moments) < oracle.LARGEST_Z
    # Top lists read as rankings of a subset: another posterior.
    twin = tuple((listed, False) for listed, _ in ROWS)
    found_out = oracle.worst_z(kappas, directions, grid_of(normalizer, prior, twin).moments)
    assert found_out > 1.5 * oracle.LARGEST_Z


# The more rows, the further the posterior under cheap sums is from the exact one, in its own widths.
FOURFOLD = 4 * ROWS


@pytest.mark.parametrize("prior", first_in_every_run([PRIOR, PULLED]))
def test_cheap_steps_that_an_exact_sum_decides_about_have_the_posterior(prior, monkeypatch):
    monkeypatch.setattr(angle_components, "CHEAP_ITEMS", 3)
    kappas, directions = run(FOURFOLD, settings_of("sir", "exact", prior), 1200)
    assert oracle.worst_z(kappas, directions, grid_of("exact", prior, FOURFOLD).moments) < oracle.LARGEST_Z


def test_cheap_steps_that_nothing_decides_about_are_found_out(monkeypatch):
    monkeypatch.setattr(angle_components, "CHEAP_ITEMS", 3)
    monkeypatch.setattr(angle_moves, "decided", lambda rng, log_ratio: True)
    monkeypatch.setattr(angle_moves, "log_sum_and_gradient", lambda tilts, *_: (0.0, 0.0 * tilts))
    kappas, directions = run(FOURFOLD, settings_of("sir", "exact"), 1200)
    moments = grid_of("exact", PRIOR, FOURFOLD).moments
    assert oracle.worst_z(kappas, directions, moments) > 1.5 * oracle.LARGEST_Z


def test_completions_that_stay_as_they_began_are_found_out(monkeypatch):
    monkeypatch.setattr(angle_state, "completions_sweep", lambda *arguments: None)
    kappas, directions = run(ROWS, settings_of("quadrature", "vmf"), 400)
    assert oracle.worst_z(kappas, directions, grid_of("vmf").moments) > 2 * oracle.LARGEST_Z


def test_variational_draws_are_close_but_not_exact():
    """κ of the present completions comes from the nearest Gamma distribution: near the posterior."""
    kappas, directions = run(ROWS, settings_of("vi", "vmf"), 1000)
    moments = grid_of("vmf").moments
    assert kappas.mean() == pytest.approx(float(moments["kappa"]), rel=0.15)
    np.testing.assert_allclose(directions.mean(axis=0), moments["theta"], atol=0.08)


@pytest.mark.parametrize("n_candidates", first_in_every_run([1, 3]))
def test_sir_is_exact_with_few_candidates(n_candidates, monkeypatch):
    monkeypatch.setattr(angle_moves, "N_CANDIDATES", n_candidates)
    kappas, directions = run(ROWS, settings_of("sir", "vmf"), 3000)
    assert oracle.worst_z(kappas, directions, grid_of("vmf").moments) < oracle.LARGEST_Z


def test_sir_without_the_present_state_is_found_out(monkeypatch):
    """Resampling among fresh candidates alone, as the paper does it: wrong where they are few."""
    monkeypatch.setattr(angle_moves, "N_CANDIDATES", 1)
    append = np.append

    def without_present(candidates, present):
        return candidates if np.ndim(present) == 0 and len(candidates) == 1 else append(candidates, present)

    class Numpy:
        def __getattr__(self, name):
            return without_present if name == "append" else getattr(np, name)

    monkeypatch.setattr(angle_moves, "np", Numpy())
    kappas, directions = run(ROWS, settings_of("sir", "vmf"), 3000)
    assert oracle.worst_z(kappas, directions, grid_of("vmf").moments) > 1.5 * oracle.LARGEST_Z


# Two components: who belongs together.

PAIRS: tuple[oracle.Row, ...] = (
    ((0, 1, 2), True),
    ((0, 1), False),
    ((2, 1, 0), True),
    ((2,), True),
    ((1, 0, 2), True),
    ((2, 0), False),
)


def together(labels):
    n = labels.shape[1]
    return np.stack([labels[:, i] == labels[:, j] for i in range(n) for j in range(i)], axis=1).astype(float)


# Labels and weights are drawn in the same way whatever draws the parameters.
@pytest.mark.parametrize(
    ("inference", "normalizer"),
    first_in_every_run([("sir", "exact"), ("quadrature", "vmf"), ("sir", "vmf")]),
)
def test_components_have_the_posterior(inference, normalizer):
    prior = oracle.Prior(3.0, 0.6, cap=largest_concentration(3) if normalizer == "vmf" else np.inf)
    settings = settings_of(inference, normalizer, prior, n_components=2, pseudo_count=0.7)
    rng = np.random.default_rng(5)
    state, move = state_of(PAIRS, settings, rng, t=3), gibbs_sweep(settings, 3)
    n_draws = 8000
    labels = np.empty((n_draws, len(PAIRS)), dtype=int)
    weights, kappas = np.empty((n_draws, 2)), np.empty((n_draws, 2))
    for draw in range(-100, n_draws):
        move.step(rng, state)
        labels[draw], weights[draw], kappas[draw] = state.labels, state.weights, state.kappas
    grid = oracle.Grid(3, PAIRS, prior, normalizer, low=1e-2, high=60.0, n_kappa=300, n_sphere=60)
    every, probabilities, _ = grid.labelings(0.7)
    mean, error = oracle.batch_means(together(labels))
    exact = probabilities @ together(every)
    assert np.abs((mean - exact) / error).max() < oracle.LARGEST_Z
    # Weights: E[τ₁²] says how uneven the components are.
    sizes = (every == 0).sum(axis=1)
    n = len(PAIRS)
    second = probabilities @ ((0.7 + sizes) * (1.7 + sizes) / ((1.4 + n) * (2.4 + n)))
    mean, error = oracle.batch_means(weights[:, 0] ** 2)
    assert abs(mean - second) < oracle.LARGEST_Z * error
    # Twins: components alike in what they say, and another prior of the weights.
    flat = np.abs((oracle.batch_means(together(labels))[0] - 0.5) / oracle.batch_means(together(labels))[1])
    assert flat.max() > 2 * oracle.LARGEST_Z
    other = grid.labelings(30.0)[1] @ together(every)
    mean, error = oracle.batch_means(together(labels))
    assert np.abs((mean - other) / error).max() > 1.2 * oracle.LARGEST_Z


# Maximum likelihood with incomplete rows.


def log_likelihood(tilts, rows, normalizer):
    """Ln P(rows), all compatible rankings summed."""
    t = len(tilts)
    weights = np.exp(oracle.standardized(t) @ tilts)
    total = sum(np.log(weights[oracle.compatible(t, *row)].sum()) for row in rows)
    if normalizer == "exact":
        return float(total - len(rows) * oracle.exact_log_sum(tilts))
    return float(total - len(rows) * oracle.vmf_log_sum(t, np.linalg.norm(tilts)))


@pytest.mark.parametrize("normalizer", ["vmf", "exact"])
def test_stochastic_em_reaches_the_maximum(normalizer):
    rows = (*ROWS, ((3, 2, 1, 0), True), ((2, 3), True), ((1, 3, 0), False))  # so that nobody is certain
    basis = oracle.plane(4)
    found = optimize.minimize(
        lambda x: -log_likelihood(x @ basis, rows, normalizer), np.full(3, 0.1), tol=1e-10
    )
    options = {"inference": "em", "normalizer": normalizer, "n_burn_in": 100, "n_draws": 1500}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PermixWarning)
        model = AngleMixture(**options, random_state=3, n_jobs=1, progress=False).fit(rankings_of(rows))
    tilts = model.concentrations_[0] * model.directions_[0]
    assert log_likelihood(tilts, rows, normalizer) > -found.fun - 0.01
    np.testing.assert_allclose(tilts, found.x @ basis, atol=0.12)
    assert float(model.log_likelihood_) == pytest.approx(log_likelihood(tilts, rows, normalizer), abs=1e-9)
    # Rows completed once, at random, are no data.
    complete = tuple((tuple(map(int, order)), True) for order in rankings_completed(rows))
    twin = optimize.minimize(
        lambda x: -log_likelihood(x @ basis, complete, normalizer), np.full(3, 0.1), tol=1e-10
    )
    assert log_likelihood(twin.x @ basis, rows, normalizer) < -found.fun - 0.1


def rankings_completed(rows):
    rng = np.random.default_rng(0)
    return [rng.choice(oracle.orders(4)[oracle.compatible(4, *row)]) for row in rows]


def test_shares_of_components_by_sweeps():
    """P(component | row) where sums are too expensive, against enumeration."""
    components = AngleComponents(
        tuple(range(4)),
        [0.7, 0.3],
        np.array([oracle.scores(4), np.roll(oracle.scores(4), 2)]),
        [3.0, 5.0],
        "exact",
    )
    weights = np.exp(
        components.tilts @ oracle.standardized(4).T - oracle.exact_log_sum(components.tilts)[:, None]
    )
    joint = np.array(
        [
            [components.weights[g] * weights[g, oracle.compatible(4, *row)].sum() for g in (0, 1)]
            for row in ROWS
        ]
    )
    exact = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(row_probabilities(components, rankings_of(ROWS)), exact, atol=1e-10)
    drawn = shares_by_sweeps(components, rankings_of(ROWS), 0, n_sweeps=4000)
    np.testing.assert_allclose(drawn, exact, atol=0.03)
    assert np.abs(drawn - components.weights).max() > 0.2


# Runs.


def mixed(**options):
    return settings_of(
        "quadrature",
        "vmf",
        n_components=2,
        n_draws=12,
        n_burn_in=4,
        n_chains=2,
        random_state=4,
        **options,
    )


def fitted(settings, rows=ROWS):
    from permix.angle.fit import fit_angle

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fit_angle(rankings_of(rows), settings)


def assert_same(one, other):
    assert one.draws.arrays.keys() == other.draws.arrays.keys()
    for name, array in one.draws.arrays.items():
        assert other.draws.arrays[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("inference", ["quadrature", "sir", "vi"])
def test_threads_do_not_matter(inference, monkeypatch):
    monkeypatch.setattr("permix.angle.data.PART_ENTRIES", 12)  # three rows a part
    normalizer = "exact" if inference == "sir" else "vmf"
    settings = mixed().replaced(inference=inference, normalizer=normalizer)
    one = fitted(settings.replaced(n_jobs=1))
    for n_jobs in (2, None):
        assert_same(one, fitted(settings.replaced(n_jobs=n_jobs)))
    alone = settings.replaced(n_chains=1)
    assert_same(fitted(alone.replaced(n_jobs=1)), fitted(alone.replaced(n_jobs=4)))
    other = fitted(settings.replaced(random_state=5))
    assert not np.array_equal(one.draws.arrays["concentrations"], other.draws.arrays["concentrations"])


def test_counts_are_repeated_rows():
    counted = rankings_of(ROWS)._replaced(counts=np.array([1, 2, 1, 1, 3, 1, 1, 1, 1, 1, 2]))
    from permix.angle.fit import fit_angle

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = fit_angle(counted, mixed()), fit_angle(counted.expand(), mixed())
    assert_same(one, other)
    assert one.probabilities.shape == (11, 2)
    assert one.draws.arrays["labels"].shape[2] == 15


@pytest.mark.parametrize(
    ("inference", "normalizer"), [("quadrature", "vmf"), ("sir", "vmf"), ("sir", "exact")]
)
def test_a_checkpoint_holds_all_that_matters(inference, normalizer):
    settings = settings_of(inference, normalizer, n_components=2)
    rng, move = np.random.default_rng(7), gibbs_sweep(settings, 4)
    state = state_of(ROWS, settings, rng)
    for _ in range(5):
        move.step(rng, state)
    state.refresh()
    held = {name: np.array(value) for name, value in state.checkpoint().items()}
    kept = {name: value.copy() for name, value in held.items()}
    at = rng.bit_generator.state
    other = state_of(ROWS, settings, np.random.default_rng(99))
    other.restore(held)
    other.refresh()
    state.refresh()
    again = np.random.default_rng(0)
    again.bit_generator.state = at
    for _ in range(5):
        move.step(rng, state)
        move.step(again, other)
        for name, value in state.record().items():
            np.testing.assert_array_equal(other.record()[name], value, err_msg=name)
    for name, value in kept.items():
        np.testing.assert_array_equal(held[name], value)


def test_damaged_checkpoints_are_refused():
    state = state_of(ROWS, settings_of("quadrature", "vmf", n_components=2), np.random.default_rng(0))
    good = {name: np.array(value) for name, value in state.checkpoint().items()}
    for name in ("weights", "kappas", "directions", "labels", "orders"):
        with pytest.raises(DataError, match=name):
            state.restore(good | {name: good[name][:-1]})
    state.restore(good)


class Stop(Exception):
    pass


@pytest.mark.parametrize(("inference", "normalizer"), [("quadrature", "vmf"), ("sir", "exact")])
def test_a_run_that_broke_off_goes_on(inference, normalizer, tmp_path, monkeypatch):
    """Every iteration is written; the run breaks off again and again, and ends with the same bytes."""
    plain = mixed().replaced(inference=inference, normalizer=normalizer, n_chains=1)
    undisturbed = fitted(plain)
    monkeypatch.setitem(run_chains.__kwdefaults__, "checkpoint_seconds", 0.0)
    stored = plain.replaced(store=str(tmp_path / "store"))
    step = Allocation.step
    for breaks in (3, 5, 2):
        steps = iter(range(breaks))

        def limited(self, rng, state, steps=steps):
            if next(steps, None) is None:
                raise Stop
            return step(self, rng, state)

        with monkeypatch.context() as patched:
            patched.setattr(Allocation, "step", limited)
            with pytest.raises(Stop):
                fitted(stored)
    assert_same(undisturbed, fitted(stored))
    longer = stored.replaced(n_draws=20)
    assert_same(fitted(longer.replaced(store=None)), fitted(longer))
    with pytest.raises(DataError):
        fitted(stored, ROWS[:-1])
    with pytest.raises(DataError):
        fitted(stored.replaced(prior_shape=3.0))
    with pytest.raises(DataError):
        fitted(stored, (*ROWS[:-1], (ROWS[-1][0], True)))


def test_an_interrupted_chain_keeps_its_draws(monkeypatch):
    step, calls = Allocation.step, []

    def interrupted(self, rng, state):
        calls.append(None)
        if len(calls) == 12:
            signal.raise_signal(signal.SIGINT)
        return step(self, rng, state)

    monkeypatch.setattr(Allocation, "step", interrupted)
    found = fitted(mixed().replaced(n_chains=1, n_draws=4000))
    assert found.interrupted
    assert 1 <= found.draws.arrays["weights"].shape[1] < 4000
