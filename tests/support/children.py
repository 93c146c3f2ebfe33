"""Patches new Python interpreters, for example to simulate a hostile database or a full disk.

A run starts a new interpreter, in which the patches of a test are not active. Because Python
imports the module ``sitecustomize`` at its start, the patches are applied there.
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
    """Patches that every Python interpreter applies which is started after this object."""

    def __init__(self, monkeypatch, folder):
        self._folder, self._first = folder, []
        monkeypatch.setenv("PYTHONPATH", str(folder))

    def first(self, work, *arguments):
        """Make new interpreters call a function at their start, after those added before."""
        self._first.append((work, arguments))
        file = self._folder / "first"
        file.write_bytes(pickle.dumps(sys.path) + pickle.dumps(self._first))
        (self._folder / "sitecustomize.py").write_text(_FIRST.format(file=str(file)))


def replace_method_after(kind, name, calls, method):
    """Replace a method of a class by another method after a number of calls."""
    plain, seen = getattr(kind, name, None), [0]

    def replaced(self, *arguments):
        seen[0] += 1
        return (plain if seen[0] <= calls else method)(self, *arguments)

    setattr(kind, name, replaced)


def slow_down(module, name, seconds):
    """Delay each call of a function in a module by a number of seconds."""
    of = import_module(module)
    plain = getattr(of, name)

    def slow(*arguments, **named):
        time.sleep(seconds)
        return plain(*arguments, **named)

    setattr(of, name, slow)


def hold_the_lock(*_):
    """Simulate a driver that computes without releasing the global interpreter lock."""
    ctypes.PyDLL(None).sleep(60)


def sleep(*_):
    """Simulate a driver whose server does not answer."""
    time.sleep(60)


def lose_connection(*_):
    """Simulate a driver whose server has died."""
    raise ConnectionError("the server is gone")


def raise_type_error(*_):
    """Simulate an adapter with a bug, which raises a ``TypeError``."""
    return None + 1


class ConstantMethod:
    """A method that returns a fixed value for all arguments."""

    def __init__(self, value):
        self._value = value

    def __call__(self, *_):
        return self._value


class _FullDisk:
    """A replacement for the module ``os`` whose disk is full after a number of bytes."""

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
    """Make the recorder write to a disk that is full after ``left`` more bytes."""
    from isolang.run.record import recorder

    recorder.os = _FullDisk(left)
