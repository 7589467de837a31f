"""What items are called and colored by in pictures: by party, where that is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from permix.data.labels import Label
from permix.estimators.known import known_of, labels_of
from permix.plots.style import COLORS, matplotlib_part

# Dots of a light yellow are lost on white.
DARK = tuple(color for color in COLORS if color != "#F0E442")
NOBODY = "#7F7F7F"  # items without a party, or of one of the many small ones


class ItemStyle(NamedTuple):
    """Names and colors of items by name; no colors where nothing says which."""

    labels: dict[Label, str]
    colors: dict[Label, str]
    legend: dict[str, str]  # party -> color

    def label(self, name: Label, most: int) -> str:
        """Return what an item is called; without its party where there is no room, and the legend tells."""
        label = self.labels.get(name, str(name))
        return str(name) if len(label) > most and self.legend else label

    def of(self, names: Sequence[Label], color: str) -> list[str]:
        """Return the colors of some items; one color where nothing is known of them."""
        return [self.colors.get(name, color) for name in names]


def item_style(fit: Any, items: Sequence[Label]) -> ItemStyle:
    """Return how the items of a fit are drawn: colors of a column ``color``, else one for each party."""
    known = known_of(fit).items
    names = list(items)
    labels = dict(zip(names, labels_of(fit, names), strict=True))
    if not known or not {"party", "color"} & set(known):
        return ItemStyle(labels, {}, {})
    is_color = matplotlib_part("matplotlib.colors:is_color_like")
    parties = [str(p) for p in known["party"].tolist()] if "party" in known else [""] * len(names)
    given = [str(c) for c in known["color"].tolist()] if "color" in known else [""] * len(names)
    given = [color if color and is_color(color) else "" for color in given]
    frequent = [party for party, _ in Counter(party for party in parties if party).most_common(len(DARK))]
    palette = dict(zip(frequent, DARK, strict=False))
    # The first color that an item of a party has is that of its party.
    of_party = {party: color for party, color in reversed(list(zip(parties, given, strict=True))) if color}
    colors = [
        color or of_party.get(party) or palette.get(party, NOBODY)
        for party, color in zip(parties, given, strict=True)
    ]
    legend = {party: of_party.get(party) or palette[party] for party in frequent}
    if any(party not in legend for party in parties):
        legend["others, or none"] = NOBODY
    return ItemStyle(labels, dict(zip(names, colors, strict=True)), legend if frequent else {})


def add_legend(figure: Any, style: ItemStyle) -> None:
    """Say below a picture which color is which party."""
    if not style.legend:
        return
    line = matplotlib_part("matplotlib.lines:Line2D")
    handles = [
        line([], [], marker="o", linestyle="", color=color, label=party.replace("$", r"\$"))
        for party, color in style.legend.items()
    ]
    columns = min(len(handles), 4)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize="small", frameon=False)


def color_ticks(ticks: Sequence[Any], names: Sequence[Label], style: ItemStyle) -> None:
    """Write names at an axis in the colors of their items."""
    for tick, name in zip(ticks, names, strict=True):
        if name in style.colors:
            tick.set_color(style.colors[name])
