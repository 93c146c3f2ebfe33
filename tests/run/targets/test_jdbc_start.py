"""How long a database may take to start."""

from isolang.run.play.player import _seconds_to_connect
from isolang.run.targets import target_named


def test_a_java_machine_has_the_time_of_a_server():
    """It starts when the first client connects, which takes long on a busy machine."""
    started = [_seconds_to_connect(target_named(name)) for name in ("h2", "hsqldb", "derby")]
    assert started == [_seconds_to_connect(target_named("postgres"))] * 3
    remote = _seconds_to_connect(target_named("postgres://localhost/x"))
    assert remote < min(started)
