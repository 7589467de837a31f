"""Draw the pictures of the gallery: the examples of ``gallery.md`` are run, and pictures are what they draw.

An example leaves what it drew in the variable ``picture``; the image below it says where it is saved.
"""

from __future__ import annotations

import doctest
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
IMAGE = re.compile(r"\(reference/generated/gallery/([a-z-]+\.png)\)")


def draw(page: Path, folder: Path) -> list[str]:
    """Run the examples of a page and save its pictures; return their names."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    text = page.read_text(encoding="utf-8")
    steps = [(example.lineno, example.source, "") for example in doctest.DocTestParser().get_examples(text)]
    for number, line in enumerate(text.splitlines()):
        steps += [(number, "", name) for name in IMAGE.findall(line)]
    folder.mkdir(parents=True, exist_ok=True)
    namespace: dict = {}
    names = []
    for _, source, name in sorted(steps):
        if name:
            drawn = namespace["picture"]
            getattr(drawn, "figure", drawn).savefig(folder / name, dpi=110, bbox_inches="tight")
            pyplot.close("all")
            names.append(name)
        else:
            exec(compile(source, str(page), "exec"), namespace)
    return names


def setup(app):
    """Draw before pages are read."""
    app.connect(
        "builder-inited", lambda app: draw(HERE / "gallery.md", HERE / "reference" / "generated" / "gallery")
    )
    return {"parallel_read_safe": True}
