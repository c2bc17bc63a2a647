"""Sphinx configuration: built offline by `make docs`, warnings are errors."""

import pathlib
import sys
import warnings

import scorefield

sys.path.insert(0, str(pathlib.Path(__file__).parent / "_ext"))

project = "scorefield"
author = "The scorefield developers"
copyright = "The scorefield developers"
version = release = scorefield.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "benchmark_results",
    "command_line",
    "inventories",
    "mathml",
    "see_also",
]
exclude_patterns = ["_build"]
autosummary_generate = True
templates_path = ["_templates"]
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"
nitpicky = False

html_theme = "pydata_sphinx_theme"
html_title = "scorefield"
html_theme_options = {
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_context = {"default_mode": "auto"}
html_sidebars = {page: [] for page in ("start", "which")}  # no pages below them

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "subsection_order": [
        f"../examples/{name}" for name in ("classify", "imbalance", "understand", "generate", "theory")
    ],
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "matplotlib_animations": False,
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("scorefield",),
}
# A gallery's pages show results; a compiler's first-run notes are no part of them.
warnings.filterwarnings("ignore", category=UserWarning)
