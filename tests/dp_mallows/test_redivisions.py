"""Two groups that divide their agents anew, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from permix.dp_mallows import moves
from permix.dp_mallows.lists.redivide_jit import redivide
from permix.dp_mallows.lists.top_lists_jit import part_of
from permix.dp_mallows.moves import Centers, Redivisions
from permix.moves import Cycle
from permix.partitions import DirichletProcess, MixtureOfFiniteMixtures, PitmanYor
from tests.dp_mallows.list_cases import FIVE, agrees, model_of, placed, visits_of
from tests.every_run import first_in_every_run
from tests.oracles.dp_mallows import Enumeration, mixture_of_finite_mixtures, pitman_yor

# Lists of several lengths.
LISTS = FIVE
DECAYS = (1.5, (0.5, 1.0, 1.5))
PRIORS = {
    "dp": (DirichletProcess(1.0), pitman_yor(1.0, 0.0)),
    "pitman-yor": (PitmanYor(0.3, 0.6), pitman_yor(0.3, 0.6)),
    "mfm": (MixtureOfFiniteMixtures(2.0, 0.7), mixture_of_finite_mixtures(2.0, 0.7)),
}


def chain_agrees(name, n_steps=2500, seed=1):
    """Redivisions leave the number of groups as it is: of two, the posterior given that there are two."""
    prior, rule = PRIORS[name]
    known = Enumeration(LISTS, 4, rule, *DECAYS)
    two = [k for k, labels in enumerate(known.partitions) if max(labels) == 1]
    partitions = [known.partitions[k] for k in two]
    chances = known.chances[two] / known.chances[two].sum()
    state = placed(model_of(LISTS, 4, prior, *DECAYS), (0, 0, 1, 0, 1), [(0, 1, 2, 3), (3, 2, 1, 0)])
    visits = visits_of(state, Cycle([Centers(), Redivisions(6)]), partitions, n_steps, seed)
    return agrees(visits, partitions, chances)


@pytest.mark.parametrize("name", first_in_every_run(["dp", "mfm"]))
def test_redivisions_have_the_posterior(name):
    assert chain_agrees(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIORS)
def test_long_chains_of_redivisions(name):
    assert chain_agrees(name, 60_000, seed=2)


def redivided(change):
    """The compiled move, given something else than it should be."""

    def twin(key, form, lists, tables, discount, apart, places, theta, share, sides):
        known = {"discount": discount, "apart": apart, "share": share}
        known |= change(known)
        given = (known["discount"], known["apart"], places, theta, known["share"], sides)
        return redivide(key, form, lists, tables, *given)

    return twin


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda known: {"discount": known["discount"] - 5.0}, id="another prior"),
        pytest.param(lambda known: {"share": 0.8}, id="a share that is not drawn"),
    ],
)
def test_twins_have_another_distribution(monkeypatch, change):
    monkeypatch.setattr(moves, "redivide", redivided(change))
    assert not chain_agrees("dp")


def test_an_empty_group_is_not_reached():
    """Two agents stay apart; whoever else is asked for, both groups keep one."""
    rng = np.random.default_rng(3)
    model = model_of(LISTS, 4, DirichletProcess(1.0), *DECAYS)
    state = placed(model, (0, 1, 1, 1, 1), [(0, 1, 2, 3), (3, 2, 1, 0)])
    accepted = sum(Redivisions(5).step(rng, state).accepted for _ in range(100))
    assert accepted > 20
    assert state.n_clusters == 2
    one = placed(model, (0,) * 5, [(0, 1, 2, 3)])
    assert Redivisions(5).step(rng, one).accepted == 0


def test_lists_of_some_agents():
    rows = (*LISTS, (0, 1))
    lists = model_of(rows, 4).lists
    taken = np.array([True, True, False, False, True, True])
    # Agents 1 and 5 gave the same list.
    part, agents = part_of(lists, taken)
    assert sorted(agents.tolist()) == [0, 1, 4, 5]
    for number, agent in enumerate(agents.tolist()):
        d = part.list_of[number]
        assert tuple(part.items[part.starts[d] : part.starts[d + 1]]) == rows[agent][:3]
    assert len(part.starts) == 4
    for d in range(3):
        members = part.agents[part.agent_starts[d] : part.agent_starts[d + 1]]
        assert (part.list_of[members] == d).all()
