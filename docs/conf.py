"""Sphinx configuration. ``make docs`` builds everything here without network access."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from permix import __version__  # noqa: E402

project = "permix"
author = "The permix developers"
copyright = "2026, the permix developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "gallery_pictures",  # docs/gallery_pictures.py: the pictures of the gallery, drawn by its examples
    "command_reference",  # docs/command_reference.py: commands and options, from the program itself
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "**/generated/commands.md"]
templates_path = ["_templates"]
default_role = "code"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say it in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "permix"
html_static_path = ["_static"]
html_css_files = ["permix.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "permix"},
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}
html_sidebars = {"index": []}


def leave_out_metadata_requests(app, what, name, obj, skip, options):
    """Leave out scikit-learn's ``set_..._request``, whose texts point to its own documentation."""
    short = name.rsplit(".", 1)[-1]
    return True if short.startswith("set_") and short.endswith("_request") else None


def setup(app):
    """Connect what is below."""
    app.connect("autodoc-skip-member", leave_out_metadata_requests)
    app.connect("doctree-read", strip_examples)


def strip_examples(app, doctree):
    """Drop the blank line that ends every tested example, which doctest needs and readers do not."""
    from docutils import nodes

    for block in doctree.findall(nodes.literal_block):
        text = block.astext()
        if block.rawsource == text and text != text.rstrip():
            block.rawsource = text.rstrip()
            block.children[:] = [nodes.Text(block.rawsource)]
