"""Provides the base class for servers with an optional standby that can replace the primary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isolang.run.adapter import ServerTarget
from isolang.run.servers.proxy import Proxy
from isolang.run.servers.server import Server


class WithStandby(ServerTarget):
    """A primary server, with a standby if ``standby`` is set before ``start``."""

    standby = False
    follower: Server | None = None
    link: Proxy

    def follow(self, server: Server) -> None:
        """Start a standby that follows a primary server."""
        raise NotImplementedError

    def take_over(self) -> None:
        """Turn the standby into the primary server."""
        raise NotImplementedError

    def connect_standby(self) -> Any:
        """Open a connection to the standby."""
        raise NotImplementedError

    def start_server(self, server: Server) -> None:
        super().start_server(server)
        if self.standby:
            self.follow(server)

    def promote(self, lag: Callable[[], object]) -> None:
        old, new = self.server, self.follower
        assert old is not None
        assert new is not None
        self.link.close()
        lag()
        old.control("kill")
        self.take_over()
        new.proxied, self.server = old.proxied, new
        self.hang_up()
        self.follow(new)
        old.stop()

    def close(self) -> None:
        if self.follower is not None:
            self.follower.stop()
        super().close()
