"""Two clients of django-mptt 0.20 create a root of a tree at the same moment (its issue 236).

``python benchmarks/applications/tree.py FOLDER`` starts a PostgreSQL server, prints the report, and
writes the history, the certificate and the page into the folder. The packages are in
``requirements.txt`` beside this file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from applications import asserted, with_server


def begin(host):
    """Set Django up for a server, and return the model of a category."""
    os.environ["PGHOST"] = host
    import django
    from django.conf import settings

    settings.configure(
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql", "HOST": host, "USER": "postgres",
                "NAME": "postgres",
            }
        },
        INSTALLED_APPS=["mptt"],
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    )  # fmt: skip
    django.setup()
    from django.db import models
    from mptt.models import MPTTModel, TreeForeignKey

    class Category(MPTTModel):
        name = models.CharField(max_length=50)
        parent = TreeForeignKey("self", on_delete=models.CASCADE, null=True)

        class Meta:
            app_label = "tree"

    return Category


def report(folder):
    """Return the error about two categories that are created at once."""
    with with_server() as host:
        category = begin(host)
        from django.db import connection, transaction

        def setup():
            with connection.schema_editor() as editor:
                editor.create_model(category)
            create("first")

        def create(name):
            """Create a root, and return the number of its tree."""
            try:
                with transaction.atomic():
                    return category.objects.create(name=name).tree_id
            finally:
                connection.close()

        conninfo = f"host={host} user=postgres dbname=postgres"
        return asserted(setup, lambda: create, ("books", "music"), conninfo, folder)


def main():
    folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp(prefix="tree-"))
    print(f"{report(folder)}\n\n{folder}")


if __name__ == "__main__":
    main()
