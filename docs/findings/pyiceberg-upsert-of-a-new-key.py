"""python pyiceberg-upsert-of-a-new-key.py: needs the package pyiceberg[pyarrow,sql-sqlite]."""

import tempfile

import pyarrow
from pyiceberg.catalog.sql import SqlCatalog

folder = tempfile.mkdtemp()
catalog = SqlCatalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=f"file://{folder}")
catalog.create_namespace("n")


def counter(value):
    return pyarrow.table({"id": ["a"], "n": [value]})


catalog.create_table("n.counters", schema=counter(0).schema)
first, second = catalog.load_table("n.counters"), catalog.load_table("n.counters")

print("first: ", first.upsert(counter(1), join_cols=["id"]))
print("second:", second.upsert(counter(2), join_cols=["id"]))  # it is retried, and succeeds
rows = catalog.load_table("n.counters").scan().to_arrow().to_pylist()
print("both committed; left:", rows)
