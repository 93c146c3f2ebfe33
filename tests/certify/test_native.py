"""The native checker on shapes that the other tests are too small for."""

import io

import pytest

from isolang import check, load_history, load_spec


@pytest.mark.slow
def test_many_sessions_of_one_write():
    """What no read depends on costs the checker nothing, however many sessions there are.

    A clock row of as many chains as sessions for each transaction would take minutes.
    """
    count = 300_000
    text = "".join(f"w({i},1,{i},{i})\n" for i in range(count)) + f"r(7,1,{count},{count})\n"
    history = load_history(io.BytesIO(text.encode()), "plume")
    verdict = check(history, load_spec("cc"), timeout=60)
    assert verdict.outcome == "valid"
    assert verdict.certified
