"""Pictures of the gallery are what the lines above them draw."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs permix[plot]")
DOCS = Path(__file__).parents[1] / "docs"
PAGE = """
```python
>>> from matplotlib import pyplot
>>> picture = pyplot.figure(figsize=(1, 1)).subplots()

```

![one](reference/generated/gallery/one.png)

```python
>>> picture = pyplot.figure(figsize=(2, 1))

```

![two](reference/generated/gallery/two.png)
"""


@pytest.fixture
def gallery():
    found = importlib.util.spec_from_file_location("gallery_pictures", DOCS / "gallery_pictures.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_each_picture_is_that_of_the_example_above_it(gallery, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert gallery.draw(page, tmp_path / "drawn") == ["one.png", "two.png"]
    first, second = ((tmp_path / "drawn" / name).read_bytes() for name in ("one.png", "two.png"))
    assert first.startswith(b"\x89PNG")
    assert first != second
    # An image whose example drew nothing is an error, not an old picture.
    page.write_text("![one](reference/generated/gallery/one.png)\n")
    with pytest.raises(KeyError, match="picture"):
        gallery.draw(page, tmp_path / "drawn")


def test_the_gallery_shows_every_kind_of_data(gallery):
    names = gallery.IMAGE.findall((DOCS / "gallery.md").read_text(encoding="utf-8"))
    assert {"groups.png", "overview.png", "blocks.png", "learned.png"} <= set(names)
    assert len(names) == len(set(names))
