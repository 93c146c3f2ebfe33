"""Random applications of all features: none is accused wrongly, and none is wrongly valid."""

import psycopg
import pytest
from observe import random_applications as applications


@pytest.fixture(scope="module")
def truth(server):
    """A database to replay transactions in."""
    conninfo = f"host={server} user=postgres"
    with psycopg.connect(f"{conninfo} dbname=postgres", autocommit=True) as direct:
        direct.execute("CREATE DATABASE truth")
    database = applications.Truth(f"{conninfo} dbname=truth")
    yield database
    database.close()


@pytest.mark.slow
@pytest.mark.parametrize("level", applications.LEVELS)
def test_random_applications(server, tmp_path, truth, level):
    for seed in (1, 2):
        _, problems = applications.judged(
            server, "postgres", tmp_path / f"{seed}.edn", seed, level, truth
        )
        assert problems == [], seed


def test_a_wrong_verdict_is_noticed(truth):
    """A transaction that read what no serial order shows; and an answer that one does show."""
    text = "SELECT w FROM c WHERE id = 1"
    end = [["(1, 1, 'Name1', 1)"]]
    assert applications.wrong(truth, [[[(text, ["(7,)"])]]], end, "valid", set()) == "missed"
    assert applications.wrong(truth, [[[(text, ["(7,)"])]]], end, "valid", {"limits"}) == ""
    end = truth.rows()
    assert applications.wrong(truth, [[[(text, ["(1,)"])]]], end, "invalid", set()) == "accused"
    assert applications.wrong(truth, [[[(text, ["(1,)"])]]], end, "valid", set()) == ""
