"""The input of a watch: files that grow, folders of them, pipes, read piece by piece.

A :class:`Stream` yields :class:`Batch` records. What it has yielded is always what a prefix of the
input says, up to the watermark; its :class:`Log` reads the same input again, at a place.

>>> import io
>>> from isolang.watch.stream import Stream
>>> text = b'''{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}
... {:type :ok, :process 0, :f :txn, :value [[:w :x 1]]}
... {:type :invoke, :process 1, :f :txn, :value [[:r :x nil]]}
... '''
>>> stream = Stream([io.BytesIO(text)], follow=False)
>>> batch, last = stream
>>> batch.history.columns.transactions(), batch.in_flight.tolist(), last.ended
(2, [False, True], True)
"""

from isolang.watch.stream.batch import Batch, LogPlace, LogSpan, Places
from isolang.watch.stream.log import Log
from isolang.watch.stream.records import transactions
from isolang.watch.stream.rows import Rows
from isolang.watch.stream.stream import Stream

__all__ = ["Batch", "Log", "LogPlace", "LogSpan", "Places", "Rows", "Stream", "transactions"]
