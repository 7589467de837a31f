"""What one group is made of: one file per family, its compiled side beside it in ``*_jit``.

:data:`permix.registries.FAMILIES` lists them by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from permix.registries import FAMILIES
from permix.runtime.lazy import exports

# Models of rankings take one module of this package, and no family: these load when somebody asks for them.
if TYPE_CHECKING:
    from permix.families.base import Family
    from permix.families.categorical import Categorical
    from permix.families.diagonal import GaussianDiagonal
    from permix.families.gaussian import Gaussian
    from permix.families.mixed import Mixed
    from permix.families.mixed_niw import MixedNIW
    from permix.families.multinomial import Multinomial
    from permix.families.niw import GaussianNIW

__all__ = [
    "Categorical",
    "Family",
    "Gaussian",
    "GaussianDiagonal",
    "GaussianNIW",
    "Mixed",
    "MixedNIW",
    "Multinomial",
    "family_from_description",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "base": ["Family"],
        "categorical": ["Categorical"],
        "diagonal": ["GaussianDiagonal"],
        "gaussian": ["Gaussian"],
        "mixed": ["Mixed"],
        "mixed_niw": ["MixedNIW"],
        "multinomial": ["Multinomial"],
        "niw": ["GaussianNIW"],
    },
)


def family_from_description(description: Mapping[str, Any]) -> Family:
    """Rebuild a family from what ``describe`` gave."""
    return FAMILIES.find(description.get("name"))(**{k: v for k, v in description.items() if k != "name"})
