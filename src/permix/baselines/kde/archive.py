"""What an archive of :class:`permix.MallowsKDE` holds: the training rows and how wide the bumps are."""

from __future__ import annotations

from typing import Any

import numpy as np

from permix.baselines.kde.fit import KDEFit
from permix.baselines.kde.parameters import KDEParameters
from permix.data.labels import Label
from permix.data.preferences import Preferences
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import ITEMS, under
from permix.estimators.checks import Real, Switch
from permix.estimators.fields import counts, field, not_negative, require

# The arrays of Preferences; how many items there are is said by their names.
STATEMENTS = {
    "level_indptr": field("int64", "ends", where=not_negative),
    "level_items": field("int32", "listed?", where=not_negative),
    "levels": field("int32", "listed?", where=not_negative),
    "rest_below": field("bool", "rows"),
    "pair_indptr": field("int64", "ends", where=not_negative),
    "pairs": field("int32", "pairs?", 2, where=not_negative),
    "counts": field("int64", "rows", where=counts),
}


def _pack(fit: KDEFit) -> Content:
    table = fit.preferences
    rows = {f"training/{name}": np.asarray(getattr(table, name)) for name in STATEMENTS}
    return Content(
        {"items": table.items, "dispersion": float(fit.dispersion), "interrupted": bool(fit.interrupted)},
        {**rows, "keys": fit.keys, "tried": fit.tried},
    )


def _build(saved: Saved) -> KDEFit:
    settings, facts, arrays = saved[:3]
    table = _preferences(facts["items"], under("training/", arrays))
    asked, dispersion, tried = settings.dispersion, facts["dispersion"], arrays["tried"]
    require(asked in ("cv", dispersion) and (len(tried) > 0) == (asked == "cv"), "dispersion")
    possible = (tried[:, 0] >= 0) & (tried[:, 0] <= 1) & (tried[:, 1] < np.inf)
    require(bool(np.all(possible) and np.all(np.diff(tried[:, 0]) >= 0)), "tried")
    return KDEFit(settings, table, dispersion, arrays["keys"], tried, facts["interrupted"])


def _preferences(items: tuple[Label, ...], found: dict[str, Any]) -> Preferences:
    """Rebuild the training rows, which must be as constructors of Preferences leave them."""
    from permix.kernels.posets import consistent_agents

    n, n_items = len(found["counts"]), len(items)
    require(n_items > 1, "items")
    listed, levels, pairs = found["level_items"], found["levels"], found["pairs"]
    for indptr, entries in ((found["level_indptr"], listed), (found["pair_indptr"], pairs)):
        require(indptr.shape == (n + 1,) and indptr[0] == 0 and indptr[-1] == len(entries), "rows")
        require(bool(np.all(np.diff(indptr) >= 0)), "rows")
        require(bool(np.all(entries < n_items)), "item numbers")
    require(bool(np.all(pairs[:, 0] != pairs[:, 1])), "pairs")
    sizes = np.diff(found["level_indptr"])
    row = np.repeat(np.arange(n), sizes)
    require(len(np.unique(row * n_items + listed)) == len(listed), "items of levels")
    begins = np.zeros(len(levels), dtype=np.bool_)
    begins[found["level_indptr"][:-1][sizes > 0]] = True
    steps = np.diff(levels, prepend=0)
    require(bool(np.all(levels[begins] == 0) and np.all((steps >= 0) & (steps <= 1) | begins)), "levels")
    below = found["rest_below"]
    require(not np.any(below & (sizes == 0)) and bool(np.all(below[sizes == n_items])), "rest")
    table = Preferences._from_arrays(items=items, **found)
    require(bool(consistent_agents(table.arrays(), n_items).all()), "comparisons")
    return table


SCHEMA = Schema(
    parameters=KDEParameters,
    pack=_pack,
    build=_build,
    facts={"items": ITEMS, "dispersion": Real(least=0.0, most=1.0), "interrupted": Switch()},
    arrays={f"training/{name}": about for name, about in STATEMENTS.items()}
    | {"keys": field("uint64", 3, 2), "tried": field("real", "tried?", 2)},
)
