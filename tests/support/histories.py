"""Generates small random histories that use all features of the native columns."""

from hypothesis import strategies as st

from isolang.history import UNKNOWN, Keyword, Transaction

scalars = st.one_of(
    st.integers(-3, 5),
    st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1]),
    st.booleans(),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    st.sampled_from(["1", "nil", "true", 'a"b', "a\\b", "a\nb", "[1 2]", ""]),
    st.sampled_from([Keyword("x"), Keyword("1"), Keyword("a/b")]),
    st.none(),
)


@st.composite
def transactions(
    draw,
    keys=scalars,
    values=scalars,
    statuses=("committed", "aborted", "maybe"),
    sources=True,
    lists=True,
    failed=True,
    unknown=True,
    times=True,
):
    """Generate lists of transactions in the form that ``from_transactions`` takes and returns."""
    some_keys = draw(st.lists(keys, min_size=1, max_size=3))
    count = draw(st.integers(0, 5))
    given = []
    writes = []  # (transaction, operation, key)
    timed = times and draw(st.booleans())
    for t in range(count):
        ops = []
        for i in range(draw(st.integers(0, 4))):
            key = draw(st.sampled_from(some_keys))
            kind = draw(st.sampled_from(["r", "w", "append"] if lists else ["r", "w"]))
            if kind != "r":
                ops.append((kind, key, draw(values)))
                writes.append((t, i, key))
                continue
            result = values
            if lists:
                result |= st.lists(values, max_size=3)
            if unknown:
                result |= st.just(UNKNOWN)
            op = ("r", key, draw(result))
            if sources and draw(st.booleans()):
                same = [(a, b) for a, b, k in writes if type(k) is type(key) and k == key]
                op = (*op, draw(st.sampled_from(["initial", "missing", *same])))
            ops.append(op)
        given.append(
            Transaction(
                ops=ops,
                session=draw(st.integers(0, 2)),
                status=draw(st.sampled_from(statuses)),
                begin=10 * t if timed else None,
                end=10 * t + draw(st.integers(0, 30)) if timed else None,
                number=t + 1,
                failed=tuple(i for i in range(len(ops)) if failed and draw(st.integers(0, 9)) == 0),
            )
        )
    return given
