"""Probabilities add up: those of all observations of a form sum to one, in every model, under every option.

Models come from the registry and options from their declared parameters, so that a new one is tried without
further code; if it takes something else than rankings, ``SPACES`` says what its observations are.
"""

from __future__ import annotations

import warnings
from functools import cache
from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest

import permix.families
from permix import Preferences, Rankings
from permix.dp_mallows.draws import ClusterDraws
from permix.dp_mixture.predict import MixturePredictive
from permix.errors import DataError
from permix.estimators.base import ScoreMixin
from permix.estimators.checks import Choice
from permix.estimators.registry import MODELS, part
from permix.registries import FAMILIES, PRIORS
from tests.angle.test_sums import voters
from tests.estimators.conventions import few_draws
from tests.estimators.examples import CHAINS, EXAMPLES

T = 4
ITEMS = range(T)
# -- every observation there is ----------------------------------------------------------------------------


def rankings_of(rows, unlisted="below"):
    return Rankings.from_orders([list(row) for row in rows], n_items=T, unlisted=unlisted)


def compared(*pairs, contradictions=False):
    """Every way to answer the same comparisons, without contradiction unless a model has errors."""
    answers = []
    for turned in product([False, True], repeat=len(pairs)):
        said = [pair[::-1] if turn else pair for pair, turn in zip(pairs, turned, strict=True)]
        agrees = any(all(row.index(a) < row.index(b) for a, b in said) for row in permutations(ITEMS))
        if agrees or contradictions:
            answers.append(said)
    triples = [(str(row), a, b) for row, said in enumerate(answers) for a, b in said]
    return Preferences.from_pairs(triples, items=ITEMS, on_cycle="keep" if contradictions else "error")


def tied(*sizes):
    """Every way to put all items into levels of these sizes."""
    ends = np.cumsum((0, *sizes)).tolist()
    cut = {tuple(frozenset(row[first:last]) for first, last in pairwise(ends)) for row in permutations(ITEMS)}
    levels = [[sorted(level) for level in row] for row in sorted(cut, key=repr)]
    return Preferences.from_levels(levels, items=list(ITEMS))


ASKED = (((0, 1),), ((0, 1), (2, 3)), ((0, 1), (1, 2), (2, 0)))
OBSERVATIONS = {
    "full": {"full rankings": rankings_of(permutations(ITEMS))},
    "lists": {f"lists of {n}": rankings_of(permutations(ITEMS, n)) for n in ITEMS if n},
    "subsets": {
        f"rankings of {some}": rankings_of(permutations(some), "unknown")
        for n in (1, 2, 3)
        for some in combinations(ITEMS, n)
    },
    "ties": {f"levels of {sizes}": tied(*sizes) for sizes in ((1, 2, 1), (2, 2), (3, 1))},
    "pairs": {f"answers to {pairs}": compared(*pairs) for pairs in ASKED},
}


@cache
def data_of(form):
    """Thirty agents of three groups who say something of this form; "mixed": rankings of all forms."""
    full = voters(T, "full")[:30]
    if form in ("ties", "pairs"):
        orders = full.orders.tolist()
        if form == "ties":
            return Preferences.from_levels(
                [[row[:1], row[1:3], row[3:]] for row in orders], items=list(ITEMS)
            )
        return Preferences.from_pairs(
            [
                (str(n), *pair)
                for n, row in enumerate(orders)
                for pair in ((row[0], row[2]), (row[1], row[3]))
            ],
            items=ITEMS,
        )
    if form == "mixed":
        return Rankings.concat([voters(T, each)[:12] for each in ("full", "lists", "subsets")])
    return voters(T, form)[:30]


# -- models and their options --------------------------------------------------------------------------------

# What a model cannot take, and says so.
REFUSES = {
    *(("DPMallowsMixture", form) for form in ("subsets", "ties", "pairs", "mixed")),
    *(("BlurringMeanShift", form) for form in ("subsets", "ties", "pairs", "mixed")),
    *(("AngleMixture", form) for form in ("ties", "pairs")),
}
# Options under which sums are not one, and why that is known.
APPROXIMATE = {
    ("AngleMixture", "normalizer", "vmf"): "an approximation; scores and comparisons refuse it",
    ("AngleMixture", "normalizer", "balanced"): "sums to what its error says: tests/angle/test_sums.py",
    ("AngleMixture", "inference", "vi"): "rests on vmf",
    ("AngleMixture", "inference", "quadrature"): "rests on vmf",
    ("AngleMixture", "bound", "published"): "serves vi alone",
}
# What options need beside them.
TOGETHER = {
    ("CoClustering", "prior", "dirichlet"): {"n_row_clusters": 2, "n_column_clusters": 2},
    ("CoClustering", "membership", "mixed"): {
        "prior": "dirichlet",
        "n_row_clusters": 2,
        "n_column_clusters": 2,
    },
    ("CoClusteringEnsemble", "label_cells", "all"): {"prior": "mondrian"},
}
SCORING = [name for name in sorted(MODELS) if issubclass(part(MODELS[name].estimator), ScoreMixin)]
OF_RANKINGS = [name for name in SCORING if isinstance(EXAMPLES[name].data(), Rankings)]


def options_of(name):
    """The defaults, and every other word that one of the parameters may be; families are in ``SPACES``."""
    yield {}
    for parameter, about in part(MODELS[name].estimator)._parameters_class.declared.items():
        for word in about.check.words if isinstance(about.check, Choice) else ():
            known = parameter == "family" or (name, parameter, word) in APPROXIMATE
            if word != about.default and not known:
                yield {parameter: word, **TOGETHER.get((name, parameter, word), {})}


def fitted(name, data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "AngleMixture":
            options = few_draws({"n_components": 2, **options}, data, **CHAINS)
        model = EXAMPLES[name].make(**options, progress=False)
        if "random_state" in model.get_params():
            model.set_params(random_state=0)
        return model.fit(data)


def total(model, table):
    """The sum of all probabilities, and how far Monte Carlo errors let it be from one."""
    scores, errors = model.score_samples(table, return_error=True)
    probabilities = np.exp(scores)
    drawn = 5.0 * float(probabilities @ errors) if not hasattr(model, "posterior_") else 0.0
    return float(probabilities.sum()), 1e-8 + drawn


def sums(model, name):
    """Sums over all forms that the model takes."""
    forms = [form for form in OBSERVATIONS if (name, form) not in REFUSES]
    observations = OBSERVATIONS
    if getattr(model, "errors", None) is not None:
        observations = OBSERVATIONS | {"pairs": {p: compared(*p, contradictions=True) for p in ASKED}}
    return {what: total(model, table) for form in forms for what, table in observations[form].items()}


PRIOR_OPTIONS = [{"prior": name if name != "finite" else permix.FiniteDirichlet(3)} for name in PRIORS][1:]
MORE_OPTIONS = {
    "DPMallowsMixture": PRIOR_OPTIONS,
    "BayesianMallowsMixture": [
        *[{"n_components": prior} for prior in ("mfm", "dp", "pitman-yor")],
        *[{"errors": errors, "errors_per_agent": True} for errors in ("bernoulli", "logistic")],
    ],
}
CASES = [
    (name, form, options)
    for name in OF_RANKINGS
    for options in [*options_of(name), *MORE_OPTIONS.get(name, [])]
    for form in (*OBSERVATIONS, "mixed")
    if not options or form in ("full", "lists")
]


@pytest.mark.parametrize(("name", "form", "options"), CASES)
def test_probabilities_of_rankings_sum_to_one(name, form, options):
    if (name, form) in REFUSES:
        with pytest.raises(DataError):
            fitted(name, data_of(form), **options)
        return
    model = fitted(name, data_of(form), **options)
    for what, (value, allowed) in sums(model, name).items():
        assert value == pytest.approx(1.0, abs=allowed), what


# -- tables and matrices ---------------------------------------------------------------------------


def whole_line(center, scale, n=3000):
    """Nodes and weights for an integral over all numbers, heavy tails included (double exponential)."""
    u = np.linspace(-5.2, 5.2, n)
    inner = 0.5 * np.pi * np.sinh(u)
    weights = scale * np.cosh(inner) * 0.5 * np.pi * np.cosh(u) * (u[1] - u[0])
    return center + scale * np.sinh(inner), weights


def grid(*levels):
    return np.array(list(product(*levels)))


def documents(n_words, length):
    counts = grid(*[range(length + 1)] * n_words)
    return counts[counts.sum(axis=1) == length]


def ones(rows):
    return rows, np.ones(len(rows))


def line_of_numbers(data):
    nodes, weights = whole_line(float(np.mean(data)), float(np.std(data)))
    return nodes[:, None], weights


rng = np.random.default_rng(11)
NUMBERS = np.concatenate([rng.normal(-3.0, 1.0, 12), rng.normal(4.0, 1.0, 9)])[:, None]
ANSWERS = rng.integers(0, 3, (14, 3)).astype(float)
COUNTS = rng.poisson(1.0, (14, 4)).astype(float)
CELLS = rng.integers(0, 2, (9, 4)).astype(float)
MIXED = np.column_stack([ANSWERS[:, 0] + 1, COUNTS[:, 0], NUMBERS[5:19, 0]])
MIXED_LINE = whole_line(float(MIXED[:, 2].mean()), float(MIXED[:, 2].std()))
# Data of each family, and all rows that there are, by form, each with its weight in the sum.
TABLES = {
    **{
        name: (NUMBERS, {"numbers": line_of_numbers(NUMBERS)})
        for name in FAMILIES
        if name.startswith("gaussian")
    },
    "categorical": (
        ANSWERS,
        {"answers": ones(grid(*[range(3)] * 3)), "one answer": ones(grid([np.nan], range(3), [np.nan]))},
    ),
    "mixed": (
        MIXED,
        {
            "category and number": (
                np.array([[answer, np.nan, x] for answer in (1, 2, 3) for x in MIXED_LINE[0]]),
                np.tile(MIXED_LINE[1], 3),
            ),
            "category and count": ones(grid((1, 2, 3), range(2000), [np.nan])),
        },
    ),
    "multinomial": (
        np.where(np.arange(56).reshape(14, 4) % 9 == 4, np.nan, COUNTS),
        {
            **{f"documents of {n}": ones(documents(4, n)) for n in (1, 3)},
            "three counted in two columns": ones(grid([np.nan], range(4), [np.nan], range(4))[[3, 6, 9, 12]]),
        },
    ),
}
MATRICES = {
    "bernoulli": (
        CELLS,
        {
            "rows": ones(grid(*[range(2)] * 4)),
            "rows with gaps": ones(grid([0, 1], [np.nan], [0, 1], [np.nan])),
        },
    ),
    "categorical": (CELLS + 1, {"rows": ones(grid(*[[1, 2]] * 4))}),
    "poisson": (CELLS * 3, {"one cell": ones(grid([np.nan], range(5000), [np.nan], [np.nan]))}),
    "gaussian": (
        CELLS * 4 + rng.normal(0, 1, CELLS.shape),
        {
            "one cell": (
                grid([np.nan], whole_line(2.0, 2.0)[0], [np.nan], [np.nan]),
                whole_line(2.0, 2.0)[1],
            )
        },
    ),
}
TABLES["mixed-niw"] = TABLES["mixed"]
AS_GIVEN = {
    "mixed": permix.Mixed(kinds=["category", "count", "number"]),
    "mixed-niw": permix.MixedNIW(kinds=["category", "count", "number"]),
}
SPACES = {"DPMixture": TABLES, "CoClustering": MATRICES, "CoClusteringEnsemble": MATRICES}


def space_cases():
    for name in sorted(set(SCORING) - set(OF_RANKINGS)):
        options = [*options_of(name), *(PRIOR_OPTIONS if name == "DPMixture" else [])]
        families = list(SPACES[name])
        yield from ((name, family, {}) for family in families)
        yield from ((name, families[0], chosen) for chosen in options if chosen)


def test_every_family_is_tried():
    from permix.cocluster.cells.registry import CELL_FAMILIES

    assert set(TABLES) == set(FAMILIES)
    assert set(MATRICES) == set(CELL_FAMILIES)


def marked(name, family, options):
    """Ensembles predict as the models they are made of do: all families of cells in the slow run."""
    seldom = name == "CoClusteringEnsemble" and family not in ("bernoulli", "gaussian")
    return pytest.param(name, family, options, marks=pytest.mark.slow if seldom else ())


@pytest.mark.parametrize(("name", "family", "options"), [marked(*case) for case in space_cases()])
def test_probabilities_of_rows_sum_to_one(name, family, options):
    data, forms = SPACES[name][family]
    if name == "DPMixture":  # sums do not depend on what drew the groups, and climbs and splits compile most
        options = {"moves": "gibbs", "burn_in_moves": "gibbs", **options}
    model = fitted(name, data, family=AS_GIVEN.get(family, family), **options)
    for what, (rows, weights) in forms.items():
        scores, errors = model.score_samples(rows, return_error=True)
        drawn = 5.0 * float(weights @ (np.exp(scores) * errors)) if options.get("membership") else 0.0
        assert weights @ np.exp(scores) == pytest.approx(1.0, abs=1e-6 + drawn), what


# -- broken twins ----------------------------------------------------------------------------------


def test_an_approximation_and_a_wrong_reading_are_found_out():
    approximate = fitted("AngleMixture", data_of("full"), normalizer="vmf")
    assert any(abs(value - 1.0) > 0.02 for value, _ in sums(approximate, "AngleMixture").values())
    # Lists read as rankings of what they name.
    model = fitted("MallowsMixture", data_of("lists"))
    lists = rankings_of(permutations(ITEMS, 2), "unknown")
    assert total(model, lists)[0] == pytest.approx(6.0)


@pytest.mark.parametrize("name", ["DPMallowsMixture", "DPMixture"])
def test_a_forgotten_new_group_is_found_out(name, monkeypatch):
    def forgetting(log_weights):
        def without(*arguments):
            found = log_weights(*arguments).copy()
            found[-1] = -np.inf
            return found

        return without

    for of, method in ((ClusterDraws, "log_weights"), (MixturePredictive, "condition")):
        monkeypatch.setattr(of, method, forgetting(getattr(of, method)))
    if name == "DPMallowsMixture":
        value = total(fitted(name, data_of("lists")), OBSERVATIONS["lists"]["lists of 2"])[0]
    else:
        rows, weights = TABLES["gaussian"][1]["numbers"]
        value = weights @ np.exp(fitted(name, NUMBERS, family="gaussian").score_samples(rows))
    assert value < 1.0 - 1e-3
