"""What distances from a center are, in words of tables and reports."""

from __future__ import annotations

from permix.reporting.words import count_of

# Under what name a report has the expected distance of a group.
FACTS = {
    "kendall": "pairs unlike the center",
    "footrule": "places away from the center, added up",
    "spearman": "squared places away from the center, added up",
    "cayley": "exchanges from the center",
    "hamming": "items not at their place",
    "ulam": "items moved from the center",
}


def largest(distance: str, n_items: int) -> int:
    """Return the largest distance of two rankings; Kendall's is known without compiled code."""
    if distance == "kendall":
        return n_items * (n_items - 1) // 2
    from permix.distributions.distances.names import largest_distance

    return largest_distance(distance, n_items)


def distance_line(distance: str, n_items: int) -> str:
    """Say what the expected distance of a group counts, and how large it can be.

    Examples
    --------
    >>> distance_line("hamming", 4)
    'distance: how many of 4 items a member has at another rank than the center, on average'
    """
    most, n = largest(distance, n_items), count_of(n_items, "item")
    what = {
        "kendall": f"how many of {count_of(most, 'pair')} of items a member ranks unlike the center",
        "footrule": f"by how many ranks items are away from the center, added up over items (0 to {most:,})",
        "spearman": "the squares of by how many ranks items are away from the center, added up over items "
        f"(0 to {most:,})",
        "cayley": f"how many exchanges of two items lead from the center to a member (0 to {most:,})",
        "hamming": f"how many of {n} a member has at another rank than the center",
        "ulam": f"how many of {n} must be moved to make a member's ranking from the center",
    }[distance]
    return f"distance: {what}, on average"


def under(distance: str) -> str:
    """Say which distance it is, after what it belongs to; nothing for Kendall's.

    Examples
    --------
    >>> under("footrule"), under("ulam"), under("kendall")
    (' under the footrule distance', " under Ulam's distance", '')
    """
    if distance == "kendall":
        return ""
    return (
        " under the footrule distance" if distance == "footrule" else f" under {distance.title()}'s distance"
    )


def dispersion_text(dispersion: float, distance: str) -> str:
    """Write a dispersion: where one step of the distance says little, with the digits that tell it from 1.

    Examples
    --------
    >>> dispersion_text(0.934748, "spearman"), dispersion_text(0.99123, "spearman")
    ('0.93', '0.991')
    """
    digits = 2
    while distance != "kendall" and digits < 6 and 0.0 < 1.0 - dispersion < 0.5 * 10.0 ** (1 - digits):
        digits += 1
    return f"{dispersion:.{digits}f}"
