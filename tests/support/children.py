"""What the processes of runs do first, and the hostile databases and disks that it puts there.

A run lives in a new interpreter, where nothing holds that a test has patched. Python begins with
the module ``sitecustomize``, so that patches can be made there, too.
"""

import ctypes
import os
import pickle
import sys
import time
from importlib import import_module

_FIRST = """
import pickle, sys
with open({file!r}, "rb") as file:
    sys.path[:] = pickle.load(file)
    for work, arguments in pickle.load(file):
        work(*arguments)
"""


class Children:
    """What interpreters do first that are started from now on."""

    def __init__(self, monkeypatch, folder):
        self._folder, self._first = folder, []
        monkeypatch.setenv("PYTHONPATH", str(folder))

    def first(self, work, *arguments):
        """Have each of them call a function of a module, after those that were said before."""
        self._first.append((work, arguments))
        file = self._folder / "first"
        file.write_bytes(pickle.dumps(sys.path) + pickle.dumps(self._first))
        (self._folder / "sitecustomize.py").write_text(_FIRST.format(file=str(file)))


def otherwise(kind, name, calls, method):
    """Have a method of a class do something else after some calls."""
    plain, seen = getattr(kind, name, None), [0]

    def replaced(self, *arguments):
        seen[0] += 1
        return (plain if seen[0] <= calls else method)(self, *arguments)

    setattr(kind, name, replaced)


def slowly(module, name, seconds):
    """Have a function of a module take this much longer."""
    of = import_module(module)
    plain = getattr(of, name)

    def slow(*arguments, **named):
        time.sleep(seconds)
        return plain(*arguments, **named)

    setattr(of, name, slow)


def hold_the_lock(*_):
    """What a driver does that computes without releasing the interpreter's lock."""
    ctypes.PyDLL(None).sleep(60)


def sleep(*_):
    """What a driver does whose server does not answer."""
    time.sleep(60)


def gone(*_):
    """What a driver does whose server has died."""
    raise ConnectionError("the server is gone")


def mistaken(*_):
    """What an adapter does that has a bug."""
    return None + 1


class Gives:
    """A method that returns a value, whatever it is asked."""

    def __init__(self, value):
        self._value = value

    def __call__(self, *_):
        return self._value


class _FullDisk:
    """The module ``os``, on a disk that takes some bytes more."""

    def __init__(self, left):
        self._left = left

    def __getattr__(self, name):
        return getattr(os, name)

    def write(self, file, data):
        if self._left <= 0:
            raise OSError(28, "No space left on device")
        part = data[: self._left]
        self._left -= len(data)
        return os.write(file, part)


def fill_the_disk(left):
    """Have a recorder write to a disk that takes some bytes more."""
    from isolang.run.record import recorder

    recorder.os = _FullDisk(left)
