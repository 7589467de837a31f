"""What comparisons of models ask of mixtures of vectors: densities of rows held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.data.labels import Array
from permix.dp_mixture.choose_family import chosen_family
from permix.dp_mixture.fit import MixtureFit, fit_mixture, naming_columns
from permix.dp_mixture.parameters import DPMixtureParameters
from permix.dp_mixture.predict import log_density
from permix.errors import DataError
from permix.estimators.comparable import Comparable, Way
from permix.families import Family, GaussianDiagonal, GaussianNIW, Mixed, MixedNIW
from permix.partitions import FiniteDirichlet

# Draws of the hyper-parameters of one group, which are all there is to draw.
ONE_GROUP = {"n_draws": 200, "n_burn_in": 100, "n_chains": 1}


class DPMixtureCompared(Comparable):
    """Mixtures of vectors take tables of numbers, or of numbers, counts and categories."""

    form = "table"
    parameters = DPMixtureParameters
    finds = "groups with typical values of the columns"

    def suits(self, data: Any) -> str | None:
        try:
            with naming_columns(_names(data)):
                self.ways(data)
        except DataError as error:
            return f"cannot take them: {error}"
        return None

    def ways(self, data: Any) -> tuple[Way, ...]:
        family = chosen_family(None, data)
        if isinstance(family, Mixed):
            resolved = family.resolve(data)
            # What columns are and may hold is common to all parts; all else is learned from those fitted.
            same = type(family)(kinds=resolved.kinds, levels=resolved.levels)
            return (Way(("dp-mixture",), {"family": same}),)
        family.resolve(data)
        default = Way(("dp-mixture",), {"family": family})
        if not isinstance(family, GaussianNIW) or np.shape(data)[1] < 2:
            return (default,)
        diagonal = Way(("dp-mixture", "--family", GaussianDiagonal.name), {"family": GaussianDiagonal()})
        return (default, diagonal)

    def fit(self, data: Any, settings: DPMixtureParameters) -> MixtureFit:
        return fit_mixture(data, settings, _names(data))

    def score(self, fit: MixtureFit, held_out: Any, seed: int) -> tuple[Array, Array]:
        with naming_columns(fit.feature_names):
            encoded = fit.family.encode(held_out)
        return log_density(fit.serving(encoded), encoded, len(held_out))

    def baselines(self, data: Any, held_out: Any, options: Mapping[str, Any], seed: int) -> dict[str, Array]:
        """One group of the default family; and, where that knows how columns go together, of one without."""
        families: dict[str, Family] = {"one group": options["family"]}
        if isinstance(options["family"], GaussianNIW):
            families["independent columns"] = GaussianDiagonal()
        elif isinstance(options["family"], MixedNIW):
            kinds, levels = options["family"].kinds, options["family"].levels
            families["independent columns"] = Mixed(kinds=kinds, levels=levels)
        found = {}
        for name, family in families.items():
            asked = {"prior": FiniteDirichlet(1), "random_state": seed, "progress": False, **ONE_GROUP}
            fit = self.fit(data, DPMixtureParameters(family=family, **asked))
            found[name] = self.score(fit, held_out, seed)[0]
        return found


def _names(data: Any) -> tuple[str, ...] | None:
    return tuple(map(str, data.columns)) if hasattr(data, "columns") else None


COMPARED = DPMixtureCompared()
