"""Synthetic data with known truth, and loaders for public data sets.

Generators (``make_…``) return a named tuple: ``data`` first, then the truth by name. Loaders (``load_…``)
look into the folder named by ``PERMIX_DATA`` and the user's cache before they download;
:func:`describe` lists them with their licenses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from permix.runtime.lazy import exports

if TYPE_CHECKING:
    from permix.datasets.examples import EXAMPLES as EXAMPLES
    from permix.datasets.examples import write_example as write_example
    from permix.datasets.fetch import cache_folder as cache_folder
    from permix.datasets.generators_college import make_college_applications as make_college_applications
    from permix.datasets.generators_matrices import make_grid_coclusters as make_grid_coclusters
    from permix.datasets.generators_matrices import make_mondrian_matrix as make_mondrian_matrix
    from permix.datasets.generators_rankings import make_angle_mixture as make_angle_mixture
    from permix.datasets.generators_rankings import (
        make_generalized_mallows_mixture as make_generalized_mallows_mixture,
    )
    from permix.datasets.generators_rankings import make_mallows_mixture as make_mallows_mixture
    from permix.datasets.generators_vectors import make_categorical_clusters as make_categorical_clusters
    from permix.datasets.generators_vectors import make_documents as make_documents
    from permix.datasets.generators_vectors import make_dp_gaussian as make_dp_gaussian
    from permix.datasets.generators_vectors import make_gaussian_clusters as make_gaussian_clusters
    from permix.datasets.loaders import Dataset as Dataset
    from permix.datasets.loaders import describe as describe
    from permix.datasets.loaders import load_ap as load_ap
    from permix.datasets.loaders import load_apa as load_apa
    from permix.datasets.loaders import load_jester as load_jester
    from permix.datasets.loaders import load_movielens as load_movielens
    from permix.datasets.loaders import load_preflib as load_preflib
    from permix.datasets.loaders import load_sushi as load_sushi

_MODULES = {
    "examples": ("EXAMPLES", "write_example"),
    "fetch": ("cache_folder",),
    "generators_college": ("make_college_applications",),
    "generators_matrices": ("make_grid_coclusters", "make_mondrian_matrix"),
    "generators_rankings": ("make_angle_mixture", "make_generalized_mallows_mixture", "make_mallows_mixture"),
    "generators_vectors": (
        *("make_categorical_clusters", "make_documents", "make_dp_gaussian", "make_gaussian_clusters"),
    ),
    "loaders": (
        *("Dataset", "describe", "load_ap", "load_apa", "load_jester", "load_movielens"),
        *("load_preflib", "load_sushi"),
    ),
}
__all__ = sorted(name for names in _MODULES.values() for name in names)
__getattr__, __dir__ = exports(__name__, _MODULES)
