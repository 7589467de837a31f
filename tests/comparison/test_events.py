"""What models score is one event: any full ranking that agrees with an answer. Answers sum to one."""

from __future__ import annotations

from itertools import combinations, permutations, product

import numpy as np
import pytest

import permix
from permix.comparison.forms import FORMS
from permix.estimators.comparable import comparable_of
from permix.estimators.registry import MODELS
from tests.comparison.toys import agreeing

ITEMS = ("a", "b", "c", "d")
QUICK = {"n_components": 2, "n_init": 2, "n_draws": 40, "n_burn_in": 40, "progress": False, "random_state": 0}


def of_votes():
    found = {name: comparable_of(about) for name, about in MODELS.items()}
    return {name: one for name, one in found.items() if one is not None and one.form == "votes"}


def data():
    rng = np.random.default_rng(5)
    orders = [list(rng.permutation(ITEMS)[: rng.integers(1, 5)]) for _ in range(40)]
    orders += [["a", "b", "c", "d"]] * 12 + [["d", "c"]] * 9
    return FORMS["votes"].read(permix.Rankings.from_orders(orders, items=ITEMS))


def questions():
    """Answers to one question each, all that are possible: they sum to one."""
    below = {"items": ITEMS}
    subset = {"items": ITEMS, "unlisted": "unknown"}
    yield "full", permix.Rankings.from_orders(list(permutations(ITEMS)), **below)
    yield "top 1", permix.Rankings.from_orders([[item] for item in ITEMS], **below)
    yield "top 2", permix.Rankings.from_orders(list(permutations(ITEMS, 2)), **below)
    yield "subset", permix.Rankings.from_orders(list(permutations(ITEMS[1:])), **subset)
    two = [[list(pair), [item for item in ITEMS if item not in pair]] for pair in combinations(ITEMS, 2)]
    yield "levels", permix.Preferences.from_levels(two, items=ITEMS)
    sides = [[("a", "b"), ("b", "a")], [("c", "d"), ("d", "c")]]
    stated = [(row, *pair) for row, pairs in enumerate(product(*sides)) for pair in pairs]
    yield "pairs", permix.Preferences.from_pairs(stated, items=ITEMS)


@pytest.fixture(scope="module")
def fits():
    table, found = data(), {}
    for name, compared in of_votes().items():
        if compared.suits(table) is None:
            given = {key: value for key, value in QUICK.items() if key in compared.parameters.declared}
            found[name] = compared.fit(table, compared.parameters(**given))
    return found


def test_every_model_of_lists_takes_part(fits):
    assert {"MallowsMixture", "DPMallowsMixture", "AngleMixture", "MallowsKDE", "BlurringMeanShift"} <= set(
        fits
    )


@pytest.mark.parametrize("form", [name for name, _ in questions()])
def test_answers_to_a_question_sum_to_one_and_are_sums_over_rankings(fits, form):
    answers = FORMS["votes"].read(dict(questions())[form])
    full = FORMS["votes"].read(dict(questions())["full"])
    compared_any = False
    for name, fit in fits.items():
        compared = of_votes()[name]
        if compared.suits(answers) is not None:
            continue
        compared_any = True
        values, errors = compared.score(fit, answers, 0)
        noise = 6.0 * float((np.exp(values) * errors).sum()) + 1e-6
        assert np.exp(values).sum() == pytest.approx(1.0, abs=noise), name
        scores, _ = compared.score(fit, full, 0)
        of_full = {agreeing(full, row)[0]: np.exp(scores[row]) for row in range(len(full))}
        by_sum = np.array([sum(of_full[r] for r in agreeing(answers, row)) for row in range(len(answers))])
        slack = 6.0 * np.exp(values) * errors + 1e-6
        assert np.all(np.abs(np.exp(values) - by_sum) <= slack), name
        if form in ("top 2", "subset"):
            # The twin that takes what is not listed for unknown, or for below, is another event.
            other = answers._replaced(rest_below=~answers.rest_below)
            if compared.suits(other) is None:
                twin = np.exp(compared.score(fit, other, 0)[0])
                assert np.max(np.abs(twin - by_sum)) > 0.02, name
    assert compared_any
