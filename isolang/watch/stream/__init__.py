"""Reads the input of a watch piece by piece: growing files, folders of such files, and pipes.

A :class:`Stream` yields :class:`Batch` records. Together, the batches so far contain exactly the
transactions of the input up to the watermark. The :class:`Log` of a stream reads transactions of
the same input again.

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
