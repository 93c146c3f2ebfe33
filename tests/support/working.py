"""Work for child processes (:mod:`isolang.jobs.child`) that takes time in different ways."""

import time


def compute(seconds, send):
    """Use the processor until it has been used for some seconds."""
    send("phase", "prepare")
    while time.process_time() < seconds:
        pass
    send("result", "done")


def wait(seconds, send):
    """Wait, and use nearly no processor time."""
    send("phase", "prepare")
    time.sleep(seconds)
    send("result", "done")
