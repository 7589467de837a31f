"""What comparisons of models ask of co-clusterings and ensembles: probabilities of cells held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from permix.cocluster.cells.choose_family import MANY_LEVELS, family_for
from permix.cocluster.cells.families import CategoricalCells, CellFamily, cell_family
from permix.cocluster.ensemble import fit_ensemble
from permix.cocluster.fit import BlockFit, encoded, fit_cocluster
from permix.cocluster.parameters import CoClusterParameters, EnsembleParameters
from permix.cocluster.predict import BlockPredictions
from permix.cocluster.simple import simple_predictives
from permix.data.cells import Cells
from permix.data.labels import Array
from permix.estimators.comparable import Comparable, Way
from permix.estimators.parameters import Parameters


def compared_family(cells: Cells) -> str:
    """Return the family that a fit would choose, or counts: whole numbers of many different values."""
    family = family_for(cells.values)
    many = family == "categorical" and not cells.is_text and len(np.unique(cells.values)) > MANY_LEVELS
    return ("poisson" if cells.values.min() >= 0.0 else "gaussian") if many else family


def with_all_levels(family: str, cells: Cells) -> str | CellFamily:
    """Return a family that knows all levels, of which a part of the cells may lack some."""
    return CategoricalCells().resolve(cells.values) if family == "categorical" else family


class CoClusterCompared(Comparable):
    """Co-clusterings take matrices whose cells are all of one kind."""

    form = "matrix"
    parameters: type[Parameters] = CoClusterParameters
    finds = "groups of rows by groups of columns"

    def suits(self, data: Cells) -> str | None:
        if min(data.shape) < 2:
            return "needs two rows and two columns or more"
        return None

    def ways(self, data: Cells) -> tuple[Way, ...]:
        return (self._way(data),)

    def _way(self, data: Cells, *words: str, **options: Any) -> Way:
        family = compared_family(data)
        said = () if family == "categorical" else ("--family", family)
        # The pseudo-count is learned as it is where a family is given by its name.
        chosen = CoClusterParameters(family=family).with_family(
            cell_family(with_all_levels(family, data), 1.0)
        )
        learned = {"pseudo_count": chosen.pseudo_count} if "n_base" not in options else {}
        return Way(("cocluster", *words, *said), {"family": chosen.family, **learned, **options})

    def fit(self, data: Cells, settings: Any) -> BlockFit:
        return fit_cocluster(data, settings)

    def score(self, fit: BlockFit, held_out: Cells, seed: int) -> tuple[Array, Array]:
        values = BlockPredictions(fit).log_probability(held_out)
        return values, np.zeros_like(values)

    def baselines(
        self, data: Cells, held_out: Cells, options: Mapping[str, Any], seed: int
    ) -> dict[str, Array]:
        """All cells in one block; every column a block; all levels alike."""
        matrix = encoded(data, cell_family(options["family"]))
        codes = matrix.family.encode(held_out.values)
        places = (held_out.rows, held_out.columns)
        found = {
            name: simple.log_probability(*places, codes)
            for name, simple in simple_predictives(matrix).items()
        }
        if matrix.family.has_levels:
            found["uniform"] = np.full(held_out.n_cells, -float(np.log(matrix.family.n_slots)))
        return found


class EnsembleCompared(CoClusterCompared):
    """Ensembles are the consensus of several co-clusterings."""

    parameters = EnsembleParameters
    pace = 2
    finds = "the groups that several such fits agree on"

    def ways(self, data: Cells) -> tuple[Way, ...]:
        n_base = EnsembleParameters.declared["n_base"].default
        return (self._way(data, "--ensemble", str(n_base), n_base=n_base),)

    def fit(self, data: Cells, settings: Any) -> BlockFit:
        return fit_ensemble(data, None, settings)

    def baselines(
        self, data: Cells, held_out: Cells, options: Mapping[str, Any], seed: int
    ) -> dict[str, Array]:
        return {}


COMPARED = CoClusterCompared()
ENSEMBLE = EnsembleCompared()
