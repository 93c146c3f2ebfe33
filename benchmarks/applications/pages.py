"""Two clients of django-treebeard add a page to one parent at the same moment (its issue 53).

``python benchmarks/applications/pages.py FOLDER`` starts a PostgreSQL server, prints the report,
and writes the history into the folder. ``requirements.txt`` beside this file has version 4.7.1;
``PYTHONPATH`` may name a folder with version 5.0.3, where the addition locks the parent.
"""

from __future__ import annotations

from importlib.metadata import version

from applications import begin_django, judged, print_reports, with_server


def reports(folder):
    """Yield what two additions do at the same time."""
    with with_server() as host:
        begin_django(host, "treebeard")
        from django.db import connection, models, transaction
        from treebeard.mp_tree import MP_Node

        class Page(MP_Node):
            title = models.CharField(max_length=50)

            class Meta:
                app_label = "pages"

        def setup():
            with connection.schema_editor() as editor:
                editor.create_model(Page)
            Page.add_root(title="home")
            connection.close()

        def add(title):
            """Add a page below the first one, and return its path."""
            try:
                with transaction.atomic():
                    return Page.objects.get(title="home").add_child(title=title).path
            finally:
                connection.close()

        name = f"django-treebeard-{version('django-treebeard')}"
        conninfo = f"host={host} user=postgres dbname=postgres"
        calls = [(add, ("news",)), (add, ("jobs",))]
        # Version 5 uses what it reads under its lock, not the page that was read before.
        yield name, judged(setup, calls, conninfo, folder / name, superseded_reads="ignore")


if __name__ == "__main__":
    print_reports("pages", reports)
