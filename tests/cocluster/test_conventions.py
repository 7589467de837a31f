"""scikit-learn's conventions for the estimators of co-clusterings.

On numbers: its checks draw real numbers, and of levels they would draw new ones for every prediction.
"""

from __future__ import annotations

import pytest

import permix
from tests.estimators.conventions import conventions

CHAINS = {"n_draws": 4, "n_burn_in": 2, "n_chains": 1, "random_state": 0, "progress": False}

TAGS = "reads the tags of a classifier wherever there is predict_proba; groups are not classes"
CANNOT_APPLY = {"check_estimator_sparse_array": TAGS, "check_estimator_sparse_matrix": TAGS}


pytestmark = pytest.mark.filterwarnings("ignore::permix.errors.PermixWarning")


@conventions(
    permix.CoClustering(family="gaussian", **CHAINS),
    permix.CoClusteringEnsemble(family="gaussian", n_base=2, **CHAINS),
    cannot_apply=CANNOT_APPLY,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.slow
@conventions(
    permix.CoClustering("mondrian", "gaussian", **CHAINS),
    cannot_apply=CANNOT_APPLY,
)
def test_scikit_learn_conventions_under_another_prior(estimator, check):
    check(estimator)
