"""Adds a page to a tree of django-treebeard (its issue 53), as ``isocheck court`` asks.

``requirements.txt`` beside this file has version 4.7.1. ``PYTHONPATH`` may name a folder with
version 5.0.3, where the addition locks the parent.
"""

from __future__ import annotations

from applications import begin_django, run_command

begin_django("treebeard")

from django.db import connection, models, transaction  # noqa: E402 - needs the settings
from treebeard.mp_tree import MP_Node  # noqa: E402


class Page(MP_Node):
    title = models.CharField(max_length=50)

    class Meta:
        app_label = "pages"


def setup():
    with connection.schema_editor() as editor:
        editor.create_model(Page)
    Page.add_root(title="home")


def add(title):
    """Add a page below the first one, and return its path."""
    with transaction.atomic():
        return Page.objects.get(title="home").add_child(title=title).path


if __name__ == "__main__":
    run_command(setup, add)
