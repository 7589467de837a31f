"""What posterior predictive checks say of differences that only many agents show."""

from __future__ import annotations

import numpy as np

from permix.posterior.checks import Aspect, compare


def checks_of(name, off, spread=0.001, more=()):
    """Checks of two numbers of an aspect, which replicated data have so far from the observed ones."""
    rng = np.random.default_rng(0)
    others = {each: Aspect(["a", "b"], np.array([1.0, 2.0])) for each in more}
    seen = {name: Aspect(["a", "b"], np.array([2.0 + off, 1.0])), **others}
    drawn = []
    for _ in range(200):
        values = np.array([2.0, 1.0]) + spread * rng.standard_normal(2)
        drawn.append({name: Aspect(["a", "b"], values), **others})
    return compare(seen, drawn, 60_000)


def test_lists_that_are_a_little_longer_are_no_reason_for_care():
    """Of 60,000 agents, 0.02 items more or less are found, and say nothing against a model."""
    name = "list lengths by first choice"
    slight, clear = checks_of(name, 0.02), checks_of(name, 0.06)
    assert not slight.aspects["reproduced"].all()
    assert slight.lacking == []
    assert slight.verdict == f"The model reproduces {name} but for differences that do not matter."
    assert clear.lacking == [name]
    assert clear.verdict.startswith(f"The model does not reproduce {name} (a: 2.06")


def test_means_are_measured_in_standard_deviations():
    spreads = ("column spreads",)  # of a it is 1
    assert checks_of("column means", 0.03, more=spreads).lacking == []
    assert checks_of("column means", 0.06, more=spreads).lacking == ["column means"]
    assert checks_of("column means", 0.03).lacking == ["column means"]  # nobody knows how much that is


def test_other_numbers_are_held_to_what_chance_leaves():
    assert checks_of("column flatness", 0.02).lacking == ["column flatness"]
