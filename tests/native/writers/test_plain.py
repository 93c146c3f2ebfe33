"""The fast writers: the same bytes and the same report as the general ones, wherever they apply."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.histories import transactions

from isolang.history import History, load_history, write_history
from isolang.history.writers import bincode, edn, plain, plume
from isolang.workload import BUGS, RULES, Workload, generate

GENERAL = {"edn": edn.encode, "dbcop": bincode.encode, "plume": plume.encode}


def both(history, form, drop):
    """What the fast way and the general way write; ``None`` where the fast one does not apply."""
    if not plain.applies(history, form, drop):
        return None
    pieces = []
    report = plain.write(history, pieces.append, name=form, drop=drop)
    return (b"".join(pieces), report), GENERAL[form](history, renumber=False, drop=drop)


@settings(max_examples=300, deadline=None)
@given(
    transactions(
        keys=st.integers(0, 3),
        values=st.one_of(st.integers(1, 4), st.none()),
        lists=False,
        times=True,
        sources=False,
        statuses=("committed", "aborted", "maybe"),
    ),
    st.sampled_from(sorted(GENERAL)),
    st.sampled_from([(), ("real-time",)]),
)
def test_the_fast_way_agrees(txns, form, drop):
    """On arbitrary histories, most of them not plain."""
    found = both(History.from_transactions(txns), form, frozenset(drop))
    if found is not None:
        assert found[0] == found[1]


@pytest.mark.parametrize("form", GENERAL)
@pytest.mark.parametrize("rule", RULES)
def test_generated_histories_are_plain(form, rule):
    """The fast way applies to them, agrees, and what it writes reads back."""
    for seed in range(4):
        history = generate(
            Workload(
                rule=rule,
                bugs=(list(BUGS)[seed],),
                sessions=5,
                transactions=40,
                operations=3,
                keys=8,
                values=(0, 3)[seed % 2],
                lists=form == "edn" and seed == 0 and RULES[rule].reads != "replica",
                info_rate=0.1 if form == "edn" else 0,
                abort_rate=0.1,
                seed=seed,
            )
        )
        drop = frozenset() if form == "edn" and seed else frozenset({"real-time"})
        found = both(history, form, drop)
        assert found is not None
        assert found[0] == found[1]
        out = io.BytesIO()
        write_history(history, out, format=form, drop=drop)
        assert out.getvalue() == found[0][0]
        back = load_history(io.BytesIO(out.getvalue()), format=form)
        assert back.columns.operations() == history.columns.operations()


def test_a_failing_target_is_an_error():
    """What the target raises comes through the native writer."""
    history = generate(Workload(transactions=10))

    def full(piece):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        plain.write(history, full, name="edn", drop=frozenset())
