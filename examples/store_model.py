"""A model of one's own: a store of strings with get, put and append, as in Porcupine's tests.

isocheck linearize --model examples/store_model.py:STORE examples/store.edn
"""

from collections.abc import Sequence

from isolang import Model
from isolang.models import ObjectCall


def step(text: str, call: ObjectCall) -> Sequence[str]:
    """Return the text after an operation, or nothing if its result is another one."""
    match call.f:
        case "put":
            return [call.input]
        case "append":
            return [text + call.input]
        case "get" if call.returned(text):
            return [text]
    return []


STORE = Model(initial="", step=step, name="store")
