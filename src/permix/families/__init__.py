"""What one cluster is made of: one file per family, its compiled side beside it in ``*_kernel``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from permix.errors import DataError
from permix.families.base import Family
from permix.families.categorical import Categorical
from permix.families.gaussian import Gaussian
from permix.families.multinomial import Multinomial
from permix.families.niw import GaussianNIW

FAMILIES: dict[str, type[Family]] = {
    family.name: family for family in (Gaussian, GaussianNIW, Multinomial, Categorical)
}

__all__ = [
    "FAMILIES",
    "Categorical",
    "Family",
    "Gaussian",
    "GaussianNIW",
    "Multinomial",
    "family_from_description",
]


def family_from_description(description: Mapping[str, Any]) -> Family:
    """Rebuild a family from what ``describe`` gave."""
    fields = dict(description)
    name = fields.pop("name", None)
    if name not in FAMILIES:
        raise DataError(f"unknown family {name!r}; known are {', '.join(FAMILIES)}")
    return FAMILIES[name](**fields)
