"""What an archive of :class:`permix.MallowsKDE` holds: the training rows and how wide the bumps are."""

from __future__ import annotations

import numpy as np

from permix.baselines.kde.fit import KDEFit
from permix.baselines.kde.parameters import KDEParameters
from permix.estimators.archive import Content, Saved, Schema
from permix.estimators.archive_parts import (
    ITEMS,
    pack_preferences,
    preference_fields,
    preferences_of,
    under,
)
from permix.estimators.checks import Real, Switch
from permix.estimators.fields import field, require


def _pack(fit: KDEFit) -> Content:
    table = fit.preferences
    rows = pack_preferences("training/", table)
    return Content(
        {"items": table.items, "dispersion": float(fit.dispersion), "interrupted": bool(fit.interrupted)},
        {**rows, "keys": fit.keys, "tried": fit.tried},
    )


def _build(saved: Saved) -> KDEFit:
    settings, facts, arrays = saved[:3]
    table = preferences_of(facts["items"], under("training/", arrays))
    asked, dispersion, tried = settings.dispersion, facts["dispersion"], arrays["tried"]
    require(asked in ("cv", dispersion) and (len(tried) > 0) == (asked == "cv"), "dispersion")
    possible = (tried[:, 0] >= 0) & (tried[:, 0] <= 1) & (tried[:, 1] < np.inf)
    require(bool(np.all(possible) and np.all(np.diff(tried[:, 0]) >= 0)), "tried")
    return KDEFit(settings, table, dispersion, arrays["keys"], tried, facts["interrupted"])


SCHEMA = Schema(
    parameters=KDEParameters,
    pack=_pack,
    build=_build,
    facts={"items": ITEMS, "dispersion": Real(least=0.0, most=1.0), "interrupted": Switch()},
    arrays=preference_fields("training/")
    | {"keys": field("uint64", 3, 2), "tried": field("real", "tried?", 2)},
)
