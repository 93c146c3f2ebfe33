"""One HTML file that shows a verdict: the argument, the timeline and the graph, side by side.

``contents.py`` gathers what a page says, as records; ``columns.py`` packs the history; ``html.py``
puts both into the template. ``page/`` holds the template, the style and the scripts, which run in
the browser as they stand: there is no build step. ``vendor/`` holds the one library they use.
"""

from isolang.report.course import course_of
from isolang.report.html import page, save_page

__all__ = ["course_of", "page", "save_page"]
