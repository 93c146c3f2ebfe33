"""python deltalake-overwrite-beside-append.py: needs the packages deltalake and pyarrow."""

import tempfile

import pyarrow
import pyarrow.fs
from deltalake import DeltaTable, write_deltalake

folder = tempfile.mkdtemp()


def row(name):
    return pyarrow.table({"name": [name]})


serializable = {"delta.isolationLevel": "Serializable"}
write_deltalake(folder, row("old"), configuration=serializable)
first, second = DeltaTable(folder), DeltaTable(folder)

write_deltalake(first, row("appended"), mode="append")
write_deltalake(second, row("new"), mode="overwrite")
table = DeltaTable(folder)
for commit in reversed(table.history()):
    print("version", commit["version"], commit["operation"], commit["operationParameters"]["mode"])
files = pyarrow.fs.SubTreeFileSystem(folder, pyarrow.fs.LocalFileSystem())
left = table.to_pyarrow_table(filesystem=files).to_pylist()
print("both committed; left:", left)
