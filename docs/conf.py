"""Configuration of the documentation: ``sphinx-build -W docs FOLDER`` needs `.[docs]` and no network."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_site"))

import pages  # noqa: E402
import undrift  # noqa: E402

project = "undrift"
author = "The undrift developers"
copyright = author
version = release = undrift.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_demo",
    "_site",
    "gallery/**.ipynb",
    "gallery/**.py",
    "gallery/sg_execution_times.rst",
    "sg_execution_times.rst",
]
templates_path = ["_site"]
root_doc = "index"

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
suppress_warnings = ["config.cache"]
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
doctest_test_doctest_blocks = "default"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 10**9,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = f"undrift {release}"
html_show_sourcelink = False
html_static_path = ["_site/static"]
html_css_files = ["site.css"]
copybutton_prompt_text = "$ "
copybutton_only_copy_prompt_lines = True
html_extra_path = ["llms.txt", "_demo"]
html_theme_options = {
    "header_links_before_dropdown": 8,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "use_edit_page_button": False,
}
html_sidebars = {"index": [], "tutorial": []}


def setup(app) -> None:
    """Write the pages that are made from other files before Sphinx looks for pages."""
    pages.write_pages(DOCS)
    app.connect("source-read", pages.rewrite_page)
    app.connect("autodoc-skip-member", pages.skip_routing)
    app.connect("build-finished", pages.check_links)
