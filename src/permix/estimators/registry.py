"""Which models there are and where each one's parts lie: one line a model.

Everything that serves all models (``load``, ``save``, the command line, ``permix.plots``, ``permix.report``,
``select_components``) asks here, and nothing else names a model. A part is written "module:name" and imported
when it is first needed.
"""

from __future__ import annotations

import importlib.util
from typing import Any, NamedTuple

from permix.errors import DataError
from permix.registries import part as part


class Model(NamedTuple):
    """One model: where its parts are; "" for those it has not."""

    name: str  # the public class, and what an archive says it holds
    estimator: str
    archive: str  # its :class:`~permix.estimators.archive.Schema`
    command: str = ""  # its :class:`~permix.cli.command.ModelCommand`
    pictures: str = ""  # the module with ``PICTURES``, functions of a fit by names of :mod:`permix.plots`
    report: str = ""  # the module that says what a fit found, in sentences and in sections of a report
    selection: str = ""  # what :func:`permix.select_components` needs
    # ``fit_checks(fit, data, n_replicates, random_state)``: does it fit at all? Data may be None.
    checks: str = ""
    # ``update(fit, data, same_agents, n_particles, n_moves, seed)``: the fit to old and new data together.
    update: str = ""
    baselines: str = ""  # ``baselines(fit, data, known)``: ln p of rows under simpler models, by name
    compared: str = (
        ""  # what :func:`permix.compare` needs, a :class:`~permix.estimators.comparable.Comparable`
    )

    @property
    def named(self) -> str:
        """The name with its article, for messages."""
        return f"{'an' if self.name[0] in 'AEIOU' else 'a'} {self.name}"


MODELS: dict[str, Model] = {}


def has_part(place: str) -> bool:
    """Say whether there is a module for a part; a model need not have all files."""
    return bool(place) and importlib.util.find_spec(place.partition(":")[0]) is not None


def register(model: Model) -> None:
    """Add a model. Those of permix are added below; a package of your own calls this when it is imported."""
    MODELS[model.name] = model


def find_plug_ins() -> None:
    """Import the packages that say, by an entry point of the group "permix.models", that they have models."""
    from importlib.metadata import entry_points

    for found in entry_points(group="permix.models"):
        found.load()


def fit_of(model: Any) -> Any:
    """Return the fit behind an estimator; a fit is its own."""
    if hasattr(model, "model") and not hasattr(model, "get_params"):
        return model
    fit, name = getattr(model, "_fit", None), type(model).__name__
    if fit is None and name in MODELS:
        raise DataError(f"this {name} is not fitted yet; call fit first")
    if fit is None:
        raise DataError(f"a {name} is no model")
    return fit


def model_of(fit: Any) -> Model:
    """Return the model that a fit or an estimator is of."""
    name = getattr(fit_of(fit), "model", None)
    if name not in MODELS:
        raise DataError(f"permix does not know the model of a {type(fit).__name__}")
    return MODELS[name]


def in_folder(name: str, folder: str, **parts: str) -> Model:
    """Return a model whose parts lie in the files that their names suggest; ``parts`` are the exceptions."""
    places = {
        "estimator": f"estimator:{name}",
        "archive": "archive:SCHEMA",
        "command": "command:COMMAND",
        "pictures": "pictures",
        "report": "report",
        "checks": "checks:fit_checks",
        "baselines": "checks:baselines",
        "compared": "compared:COMPARED",
    } | parts
    return Model(name, **{part: f"{folder}.{place}" if place else "" for part, place in places.items()})


OF_MALLOWS = {"selection": "selection:SELECTION", "compared": "selection:COMPARED"}
register(in_folder("MallowsMixture", "permix.mallows", **OF_MALLOWS))
register(in_folder("DPMallowsMixture", "permix.dp_mallows"))
OF_BAYES = {"selection": "selection:SELECTION", "update": "following.follow:updated"}
register(in_folder("BayesianMallowsMixture", "permix.bayes_mallows", **OF_BAYES))
register(in_folder("AngleMixture", "permix.angle", selection="selection:SELECTION"))
register(in_folder("AngleClassifier", "permix.angle.classifier", command=""))
register(in_folder("DPMixture", "permix.dp_mixture"))
register(in_folder("CoClustering", "permix.cocluster"))
ENSEMBLE = {
    "estimator": "ensemble_estimator:CoClusteringEnsemble",
    "archive": "archive:ENSEMBLE_SCHEMA",
    "compared": "compared:ENSEMBLE",
}
register(in_folder("CoClusteringEnsemble", "permix.cocluster", **ENSEMBLE))
register(in_folder("MallowsKDE", "permix.baselines.kde"))
register(in_folder("BlurringMeanShift", "permix.baselines.mean_shift"))
