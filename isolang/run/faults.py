"""What goes wrong while the clients run: faults of a server of our own, at random times."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from isolang.run.target import TargetError

if TYPE_CHECKING:
    from isolang.run.recorder import Recorder
    from isolang.run.servers.server import Server

FAULTS: Final = ("kill", "pause", "disconnect", "slow")
"""``kill``: SIGKILL to the server and all its processes, and a new start; ``pause``: SIGSTOP for
a while; ``disconnect``: all connections end; ``slow``: all that is sent arrives late."""

_BETWEEN: Final = (0.5, 3.0)  # seconds from one fault to the next
_LASTS: Final = (0.1, 1.5)  # seconds of a pause and of slowness
_ENDING: Final = 6.0  # seconds to undo the last one
_DELAY: Final = (0.005, 0.1)  # seconds


class Nemesis:
    """A thread that does one fault after the other; each is in the history when it begins and ends.

    Attributes:
        done: how often each was.
        busy: whether one is being done, or undone.
    """

    def __init__(
        self,
        faults: tuple[str, ...],
        *,
        server: Server,
        recorder: Recorder,
        seed: int,
        restarted: Callable[[], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Begin.

        Args:
            faults: of ``FAULTS``.
            server: of our own.
            recorder: where to say what was done.
            seed: of the times and of the choice.
            restarted: called when the server runs again after it was killed.
            failed: called if the server does not come back.
        """
        self.done: dict[str, int] = dict.fromkeys(faults, 0)
        self.busy = False
        self._server, self._recorder = server, recorder
        self._random = Random(f"{seed}/nemesis")
        self._restarted, self._failed = restarted, failed
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Do no more faults, and undo what was done."""
        self._end.set()
        self._thread.join(_ENDING)

    def _run(self) -> None:
        try:
            while not self._end.wait(self._random.uniform(*_BETWEEN)):
                fault = self._random.choice(list(self.done))
                self.busy = True
                self._recorder.note(fault)
                getattr(self, f"_{fault}")()
                self._recorder.note(f"{fault}-is-over")
                self.done[fault] += 1
                if fault == "kill":
                    self._restarted()
                self.busy = False
        except BaseException as error:
            self._failed(error)

    def _kill(self) -> None:
        self._server.tell("kill")
        self._server.tell("start")

    def _pause(self) -> None:
        self._server.tell("pause")
        self._last()
        self._server.tell("resume")

    def _disconnect(self) -> None:
        self._server.proxy.cut()

    def _slow(self) -> None:
        self._server.proxy.delay = self._random.uniform(*_DELAY)
        self._last()
        self._server.proxy.delay = 0.0

    def _last(self) -> None:
        self._end.wait(self._random.uniform(*_LASTS))


def check_faults(faults: tuple[str, ...]) -> None:
    """Refuse what is no fault.

    Raises:
        TargetError: one is not.
    """
    for fault in faults:
        if fault not in FAULTS:
            expected = ", ".join(FAULTS)
            raise TargetError(f"no such fault (got {fault!r}, expected one of {expected})")
