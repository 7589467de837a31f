"""Small pictures written by hand: shapes with classes, whose colors the page decides, in light and in dark.

Text is escaped here and nowhere else. Names that are cut have the whole name as a title, which browsers show
when one points at it.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from permix.reporting.words import shown

# Pixels that a character of a label takes, on average.
CHARACTER = 7.0


def number(value: float) -> str:
    """Write a coordinate: a tenth of a pixel is enough.

    Examples
    --------
    >>> number(12.04), number(0.26), number(-0.01)
    ('12', '0.3', '0')
    """
    text = f"{value:.1f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


class Drawing:
    """Shapes, in the order in which they are drawn."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        kind: str = "lab",
        *,
        anchor: str = "start",
        room: float | None = None,
        turned: bool = False,
    ) -> None:
        """Write a text, cut to ``room`` pixels; ``turned``, it rises to the right."""
        cut = text if room is None else shown(text, max(int(room / CHARACTER), 4))
        place = f'x="{number(x)}" y="{number(y)}"'
        if turned:
            place += f' transform="rotate(-50 {number(x)} {number(y)})"'
        whole = f"<title>{escape(text)}</title>" if cut != text else ""
        end = "" if anchor == "start" else f" text-anchor={quoteattr(anchor)}"
        self._parts.append(f'<text class="{kind}" {place}{end}>{whole}{escape(cut)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a straight line."""
        ends = " ".join(
            f'{name}="{number(value)}"' for name, value in (("x1", x1), ("y1", y1), ("x2", x2), ("y2", y2))
        )
        self._parts.append(f'<line class="{kind}" {ends}/>')

    def rectangle(self, x: float, y: float, width: float, height: float, kind: str, title: str = "") -> None:
        """Draw a rectangle, which may say something when one points at it."""
        shape = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
        said = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(
            f'<rect class="{kind}" {shape}>{said}</rect>' if said else f'<rect class="{kind}" {shape}/>'
        )

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        """Draw a disk."""
        self._parts.append(f'<circle class="{kind}" cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>')

    def diamond(self, x: float, y: float, radius: float, kind: str) -> None:
        """Draw a square that stands on its corner."""
        r = number(radius)
        self._parts.append(
            f'<path class="{kind}" d="M{number(x - radius)} {number(y)}l{r}-{r} {r} {r}-{r} {r}z"/>'
        )

    def squares(self, corners: Iterable[tuple[float, float]], width: float, height: float, kind: str) -> None:
        """Draw many rectangles of one size and color as one shape."""
        w, h = number(width), number(height)
        path = "".join(f"M{number(x)} {number(y)}h{w}v{h}h-{w}z" for x, y in corners)
        if path:
            self._parts.append(f'<path class="{kind}" d="{path}"/>')

    def done(self, title: str, description: str) -> str:
        """Return the picture with its title and description."""
        size = f'viewBox="0 0 {number(self.width)} {number(self.height)}" width="{number(self.width)}"'
        # A narrow screen shows it a little smaller, and then scrolls.
        least = f'style="min-width:{number(0.8 * self.width)}px"'
        head = f'<svg {size} height="{number(self.height)}" {least} role="img" '
        head += 'xmlns="http://www.w3.org/2000/svg">'
        told = f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
        return f"{head}{told}{''.join(self._parts)}</svg>"
