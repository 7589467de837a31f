"""A family as CONTRIBUTING says, in a package of its own: moves, files, tables and commands take it."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

FILES = {
    "__init__.py": '''
"""Groups of counts, registered when they are imported."""

from permix.registries import FAMILIES, Named, Setting

FAMILIES.entries["poisson"] = Named(
    "toy_poisson.poisson:Poisson", {"prior_shape": Setting(float, "shape of the prior of a mean", "1")}
)
''',
    "poisson_jit.py": '''
# mypy: ignore-errors
"""Poisson groups under a gamma prior, compiled."""

import math
from typing import NamedTuple

import numpy as np

import permix.families.contract_jit as contract
from permix.kernels.jit import implements, kernel


class PoissonStats(NamedTuple):
    shape: float
    rate: float
    counts: np.ndarray  # (capacity,)
    sums: np.ndarray  # (d, capacity)
    log_factorials: np.ndarray  # (capacity,)


@kernel
def _log_factorial(data, i):
    total = 0.0
    for j in range(data.shape[1]):
        total += math.lgamma(data[i, j] + 1.0)
    return total


@kernel
def _change(stats, data, i, k, sign):
    stats.counts[k] += sign
    stats.log_factorials[k] += sign * _log_factorial(data, i)
    for j in range(data.shape[1]):
        stats.sums[j, k] += sign * data[i, j]


@kernel
def _log_new(shape, rate, x):
    ways = math.lgamma(shape + x) - math.lgamma(shape)
    return ways + shape * math.log(rate) - (shape + x) * math.log(rate + 1.0)


@implements(contract.clear, PoissonStats)
def _clear(stats, k):
    stats.counts[k] = 0.0
    stats.log_factorials[k] = 0.0
    for j in range(stats.sums.shape[0]):
        stats.sums[j, k] = 0.0


@implements(contract.add, PoissonStats)
def _add(stats, data, i, k):
    _change(stats, data, i, k, 1.0)


@implements(contract.remove, PoissonStats)
def _remove(stats, data, i, k):
    _change(stats, data, i, k, -1.0)


@implements(contract.log_predictive, PoissonStats)
def _log_predictive(stats, data, i, n_clusters, out):
    constant = _log_factorial(data, i)
    for k in range(n_clusters):
        out[k] = -constant
        for j in range(data.shape[1]):
            out[k] += _log_new(stats.shape + stats.sums[j, k], stats.rate + stats.counts[k], data[i, j])


@implements(contract.log_predictive_without, PoissonStats)
def _log_predictive_without(stats, data, i, k):
    total = -_log_factorial(data, i)
    for j in range(data.shape[1]):
        x = data[i, j]
        total += _log_new(stats.shape + (stats.sums[j, k] - x), stats.rate + stats.counts[k] - 1.0, x)
    return total


@implements(contract.log_marginal, PoissonStats)
def _log_marginal(stats, k):
    total = -stats.log_factorials[k]
    for j in range(stats.sums.shape[0]):
        shape = stats.shape + stats.sums[j, k]
        total += math.lgamma(shape) - math.lgamma(stats.shape) + stats.shape * math.log(stats.rate)
        total -= shape * math.log(stats.rate + stats.counts[k])
    return total


@implements(contract.copy_cluster, PoissonStats)
def _copy_cluster(stats, source, target):
    stats.counts[target] = stats.counts[source]
    stats.log_factorials[target] = stats.log_factorials[source]
    for j in range(stats.sums.shape[0]):
        stats.sums[j, target] = stats.sums[j, source]


@implements(contract.merge, PoissonStats)
def _merge(stats, source, target):
    stats.counts[target] += stats.counts[source]
    stats.log_factorials[target] += stats.log_factorials[source]
    for j in range(stats.sums.shape[0]):
        stats.sums[j, target] += stats.sums[j, source]


@implements(contract.draw, PoissonStats)
def _draw(rng, stats, k, out):
    for j in range(stats.sums.shape[0]):
        mean = rng.standard_gamma(stats.shape + stats.sums[j, k]) / (stats.rate + stats.counts[k])
        out[j] = rng.poisson(mean)


contract.use_defaults(
    PoissonStats,
    contract.log_predictive_above,
    contract.extend,
    contract.clear_members,
    contract.project,
    contract.add_vector,
)
''',
    "poisson.py": '''
"""Groups of counts whose totals vary."""

import dataclasses
from typing import ClassVar

import numpy as np

from permix.families.base import Family, check_number, finite_matrix
from toy_poisson.poisson_jit import PoissonStats


@dataclasses.dataclass(frozen=True, eq=False)
class Poisson(Family):
    """Poisson groups under a gamma prior."""

    prior_shape: float = 1.0
    n_columns: int | None = None

    name: ClassVar[str] = "poisson"
    main_parameter: ClassVar[str] = "rates"

    def __post_init__(self):
        super().__post_init__()
        check_number(self.prior_shape, "prior_shape")

    @property
    def n_features(self):
        return self.n_columns

    def resolve(self, X):
        return dataclasses.replace(self, n_columns=finite_matrix(X, self.name).shape[1])

    def encode(self, X):
        return finite_matrix(X, self.name).copy()

    def statistics(self, capacity):
        each = np.zeros((2, capacity))
        sums = np.zeros((self.n_features, capacity))
        return PoissonStats(float(self.prior_shape), 1.0, each[0], sums, each[1])

    def decode(self, rows):
        return rows.astype(np.int64)

    def parameters(self, stats, n_clusters):
        means = (stats.shape + stats.sums[:, :n_clusters]) / (stats.rate + stats.counts[:n_clusters])
        return {"rates": means.T.copy()}
''',
}
LIBRARY = """
import numpy as np, permix, toy_poisson
X = np.loadtxt("counts.csv", delimiter=",", skiprows=1)
for moves in ("auto", "gibbs,permutation"):
    model = permix.DPMixture("poisson", moves=moves, n_draws=60, n_burn_in=40, random_state=0).fit(X)
    assert permix.adjusted_rand(model.labels_, np.repeat([0, 1], 30)) > 0.9
model.save("library.permix")
back = permix.load("library.permix")
np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
assert back.summary().columns.tolist()[-3:] == ["column 1", "column 2", "column 3"]
permix.plots.save(back, "library.png")
"""
COMMAND = "import sys, toy_poisson; from permix.cli import main; sys.argv[0] = 'permix'; main()"


@pytest.fixture
def python(tmp_path):
    """Run a program in a folder that has the package and a table of counts."""
    (tmp_path / "toy_poisson").mkdir()
    for name, text in FILES.items():
        (tmp_path / "toy_poisson" / name).write_text(text.lstrip())
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.poisson([2, 9, 4], (30, 3)), rng.poisson([12, 1, 4], (30, 3))])
    np.savetxt(tmp_path / "counts.csv", rows, "%d", ",", header="a,b,c", comments="")
    folders = os.pathsep.join([str(tmp_path), *sys.path])

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-W", "ignore", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": folders},
            capture_output=True,
            text=True,
        )

    return run


@pytest.mark.slow
def test_a_family_in_a_package_of_its_own(python):
    done = python("-c", LIBRARY)
    assert done.returncode == 0, done.stderr
    fit = ["fit", "dp-mixture", "counts.csv", "-o", "fit.permix", "--draws", "60", "--burn-in", "40"]
    done = python("-c", COMMAND, *fit, "--family", "poisson", "--prior-shape", "0.5")
    assert done.returncode == 0, done.stderr
    assert "2 groups, poisson family" in done.stdout
    assert "Groups (rates of 3 columns)" in done.stdout
    assert python("-c", COMMAND, "summary", "fit.permix").stdout == done.stdout
    done = python("-c", COMMAND, "fit", "dp-mixture", "--help")
    assert "--prior-shape" in done.stdout
    done = python("-c", COMMAND, *fit, "--force", "--prior-shape", "2")
    assert done.returncode == 2
    assert "--prior-shape belongs to --family poisson" in done.stderr
    # Without the package, permix says that it does not know what the file holds.
    done = python("-m", "permix", "summary", "fit.permix")
    assert done.returncode == 1
    assert "unknown family 'poisson'" in done.stderr
