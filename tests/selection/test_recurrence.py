"""Which smaller number of groups recurs: looked at with starts of their own, from the chosen number down."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import permix
from permix.estimators.selectable import MOST_LOOKED_AT
from permix.mallows.selection import SELECTION
from permix.selection.recurrence import recurring
from permix.selection.tables import selection_report, selection_rows


class Asked(SimpleNamespace):
    """Settings, as far as the search looks at them."""

    def replaced(self, **changes):
        return Asked(**{**vars(self), **changes})


class Model:
    """A model whose groups recur for some numbers; it notes what it is asked."""

    def __init__(self, recur, interrupted_at=0):
        self.recur, self.interrupted_at, self.fitted, self.sizes = recur, interrupted_at, [], []

    def fit(self, table, settings):
        self.fitted.append(settings.n_components)
        self.sizes.append(table.n_agents)
        stopped = settings.n_components == self.interrupted_at
        return SimpleNamespace(n=settings.n_components, interrupted=stopped)

    def recurs(self, fit):
        return None if self.recur is None else fit.n in self.recur


def looked_at(model, chosen=6, smaller=range(1, 6), n=50):
    table = permix.datasets.make_mallows_mixture(n, 4, 1, random_state=0).data
    settings = Asked(n_components=chosen, progress=False)
    return recurring(model, table, settings, SimpleNamespace(n=chosen), list(smaller), 0)


def test_the_search_ends_at_the_first_number_that_recurs():
    model = Model({2, 4})
    assert looked_at(model) == {6: False, 5: False, 4: True}
    assert model.fitted == [5, 4]


@pytest.mark.parametrize(("recur", "found"), [({6}, {6: True}), (None, {})])
def test_nothing_is_fitted_where_the_chosen_number_recurs_or_nobody_knows(recur, found):
    model = Model(recur)
    assert looked_at(model) == found
    assert model.fitted == []


def test_one_group_is_not_looked_at_and_an_interrupt_ends_the_search():
    model = Model(set())
    assert looked_at(model) == dict.fromkeys(range(2, 7), False)
    assert model.fitted == [5, 4, 3, 2]
    assert looked_at(Model(set(), interrupted_at=4)) == {6: False, 5: False}


def test_of_very_many_agents_a_part_is_looked_at():
    model = Model({5})
    looked_at(model, n=MOST_LOOKED_AT + 500)
    assert model.sizes == [MOST_LOOKED_AT]


def test_restarts_that_count_decide_for_mixtures_of_mallows_models():
    made = permix.datasets.make_mallows_mixture(400, 6, 2, dispersion=0.3, random_state=1)
    chosen = permix.select_components(
        made.data, [2, 4], rule="best", n_folds=None, random_state=0, refit=True, progress=False
    )
    assert chosen.recurs[chosen.chosen] == SELECTION.recurs(chosen.fit)
    rows = selection_rows(selection_report(chosen))
    assert [row["all_recur"] for row in rows] == [chosen.recurs.get(n) for n in (2, 4)]
    assert [row["asked"] for row in rows] == [True] * len(rows)
    two = permix.MallowsMixture(2, n_init=6, random_state=0, progress=False).fit(made.data)._fit
    assert SELECTION.recurs(two)
    seven = permix.MallowsMixture(7, n_init=6, random_state=0, progress=False).fit(made.data)._fit
    assert SELECTION.recurs(seven) is False
    assert (seven.group_matches[seven.judged_restarts] < 0.6).any()
    one = permix.MallowsMixture(2, n_init=1, random_state=0, progress=False).fit(made.data)._fit
    assert SELECTION.recurs(one) is None
    without = permix.select_components(made.data, [1, 2], random_state=0, n_init=2, progress=False)
    assert without.recurs == {}
