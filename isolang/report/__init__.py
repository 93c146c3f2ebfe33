"""Writes a verdict as one HTML file with the argument, the timeline and the graph.

``contents.py`` gathers a page's data as records, ``columns.py`` packs the history, and ``html.py``
inserts both into the template. ``page/`` contains the template, the style sheet and the scripts.
The browser runs the scripts unchanged, without a build step. ``vendor/`` contains the only library
used by the scripts.
"""

from isolang.report.course import course_of
from isolang.report.html import page, save_page

__all__ = ["course_of", "page", "save_page"]
