"""scikit-learn's conventions for estimators of rankings.

Its checks make tables of random numbers, which are no orderings: the estimators refuse them, as they must.
They run on an estimator as it is, with the reason for every check that cannot apply, and on a variant that
reads a row of numbers as scores, so that all conventions are really exercised.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from permix.angle.data import as_rankings
from permix.angle.fit import way_of
from permix.angle.parameters import SERVES, AngleParameters
from permix.errors import DataError

NOT_ORDERINGS = "fits rows of real numbers, which are no orderings of items, and they are refused"
_EVERY_ESTIMATOR = (
    "check_fit_score_takes_y",
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_estimators_dtypes",
    "check_dtype_object",
    "check_pipeline_consistency",
    "check_estimators_nan_inf",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit2d_1sample",
    "check_fit2d_1feature",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_n_features_in",
    "check_fit2d_predict1d",
)
_CLUSTERERS = ("check_clustering", "check_non_transformer_estimators_n_iter")
_CLASSIFIERS = (
    "check_classifier_data_not_an_array",
    "check_classifiers_one_label",
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_classifiers_regression_target",
    "check_supervised_y_2d",
    "check_requires_y_none",
)
CANNOT_APPLY_TO_CLUSTERERS = dict.fromkeys(_EVERY_ESTIMATOR + _CLUSTERERS, NOT_ORDERINGS)
CANNOT_APPLY_TO_CLASSIFIERS = dict.fromkeys(_EVERY_ESTIMATOR + _CLASSIFIERS, NOT_ORDERINGS)


def conventions(*estimators, cannot_apply):
    """Parametrize a test with scikit-learn's checks; those that cannot apply are listed with the reason.

    They are not run: to describe such a failure takes longer than most checks.
    """
    checks = parametrize_with_checks([*estimators], expected_failed_checks=lambda estimator: cannot_apply)
    argument_names, cases = checks.args
    listed = []
    for case in cases:
        reasons = [mark.kwargs["reason"] for mark in getattr(case, "marks", ())]
        values = case.values if reasons else case
        listed.append(
            pytest.param(*values, marks=[pytest.mark.xfail(run=False, reason=why) for why in reasons])
        )
    return pytest.mark.parametrize(argument_names, listed, **checks.kwargs)


def by_name(options):
    """Options of an angle-based model, with the approximate normalizer where the inference rests on it."""
    rests_on_it = options.get("inference") in ("vi", "quadrature")
    return ({"normalizer": "vmf"} if rests_on_it else {}) | options


def few_draws(options, data=None, **draws):
    """Options of an angle-based model, and of these numbers those that its fit uses: others are refused.

    Without data, as in a fit to full rankings.
    """
    options = by_name(options)
    try:
        settings = AngleParameters(**options)
    except DataError:  # what a test wants
        return options
    way = settings.way_for(4, True, True) if data is None else way_of(as_rankings(data), settings)
    return {name: value for name, value in draws.items() if way in SERVES[name]} | options
