"""Two clients of django-mptt 0.20 create a root of a tree at the same moment (its issue 236).

``python benchmarks/applications/tree.py FOLDER`` starts a PostgreSQL server, prints the report, and
writes the history, the certificate and the page into the folder. The packages are in
``requirements.txt`` beside this file.
"""

from __future__ import annotations

import os

from applications import begin_django, judged, print_reports, with_server


def reports(folder):
    """Yield what two categories that are created at once do."""
    with with_server() as host:
        os.environ |= {"PGHOST": host, "PGUSER": "postgres"}
        begin_django("mptt")
        from django.db import connection, models, transaction
        from mptt.models import MPTTModel, TreeForeignKey

        class Category(MPTTModel):
            name = models.CharField(max_length=50)
            parent = TreeForeignKey("self", on_delete=models.CASCADE, null=True)

            class Meta:
                app_label = "tree"

        def setup():
            with connection.schema_editor() as editor:
                editor.create_model(Category)
            create("first")

        def create(name):
            """Create a root, and return the number of its tree."""
            try:
                with transaction.atomic():
                    return Category.objects.create(name=name).tree_id
            finally:
                connection.close()

        conninfo = f"host={host} user=postgres dbname=postgres"
        calls = [(create, ("books",)), (create, ("music",))]
        yield "roots", judged(setup, calls, conninfo, folder / "roots")


if __name__ == "__main__":
    print_reports("tree", reports)
