"""Options of ``permix consensus``."""

from __future__ import annotations

from collections.abc import Mapping

from permix.cli.command import Option

OPTIONS: Mapping[str, Option] = {
    "method": Option(
        str,
        "How to find it [default: auto, which proves it optimal where that is affordable].",
        choices=("auto", "exact", "local", "borda"),
    ),
    "time_limit": Option(float, "Seconds for the exact search.", least=0.0),
}
