"""Plays short runs on a database and judges them."""

from isolang.run.judge.judge import judge_run
from isolang.run.play.runner import Runner
from isolang.run.settings import Settings


def run(tmp_path, target, **options):
    """Play a run, judge it, and return the result."""
    runner = Runner(Settings(target=target, folder=str(tmp_path), **options))
    try:
        runner.start()
        recorded = runner.run()
    finally:
        runner.close()
    return judge_run(recorded, runner.target, levels=False)


def short_run_settings(transactions=300):
    """Return the settings of a run that ends soon."""
    return {"transactions": transactions, "seconds": 60.0, "sessions": 4}
