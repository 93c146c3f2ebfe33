"""The relations between times of transactions and operations, as sets of pairs.

Elements are numbered as in ``isolang.certify.world``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from isolang.certify.facts import Facts
from isolang.rows import Rows, bits_of, union

_Moment = tuple[int, int, int]
_Moments = Sequence[_Moment]


class _After:
    """Finds the elements with a moment after a given time, as bits."""

    def __init__(self, moments: _Moments) -> None:
        ascending = sorted(moments)
        self._times = [time for time, _, _ in ascending]
        self._later = [0]
        for _, _, element in reversed(ascending):
            self._later.append(self._later[-1] | 1 << element)

    def later_than(self, time: int) -> int:
        return self._later[len(self._times) - bisect_right(self._times, time)]


class Timing:
    """Evaluates the relations that compare sessions or times, for given transactions."""

    def __init__(self, facts: Facts, members: Sequence[int]) -> None:
        """Prepare to evaluate the relations.

        Args:
            members: the numbers of the transactions in ascending order, without T0.
        """
        self._facts = facts
        self._members = members

    def session_order(self) -> Rows:
        """Return ``so``, in which an indeterminate transaction precedes nothing."""
        facts = self._facts
        rows: Rows = {self._facts.n: bits_of(self._members)}
        later: dict[int, int] = defaultdict(int)
        for t in reversed(self._members):
            session = facts.session[t]
            if facts.certain(t):
                rows[t] = later[session]
            later[session] |= 1 << t
        return rows

    def real_time(self) -> Rows:
        """Return ``rt``, which relates a to b if a ended before b began.

        An indeterminate transaction precedes nothing.
        """
        facts = self._facts
        rows: Rows = {self._facts.n: bits_of(self._members)}
        begun = sorted((facts.begin[t], t) for t in self._members if facts.begins(t))
        after = [0]
        for _, t in reversed(begun):
            after.append(after[-1] | 1 << t)
        for t in self._members:
            if facts.certain(t) and facts.ends(t):
                first = bisect_right(begun, (facts.end[t], self._facts.n))
                rows[t] = after[len(begun) - first] & ~(1 << t)
                if facts.has_own_clocks:
                    rows[t] |= bits_of(b for b in self._members if facts.rt(t, b))
        return rows

    def before_commit(self, name: str, writers: Mapping[int, Sequence[int]]) -> Rows:
        """Return ``done``, ``late`` or ``locked``, which compare times with COMMIT."""
        facts, members = self._facts, self._members
        if not facts.has_moments:
            return {}
        sent = [(facts.commit_sent(t), t, t) for t in members]
        if name == "done":
            return self._precede([(facts.commit_answered(t), t, t) for t in members], sent)
        if name == "late":
            return self._precede([(facts.first_answered(t), t, t) for t in members], sent)
        return union(
            self._precede(
                [(facts.write_answered(t, key), t, t) for t in own],
                [(facts.commit_sent(t), t, t) for t in own],
            )
            for key, own in writers.items()
        )

    def _precede(self, answers: _Moments, sends: _Moments, *, apart: bool = True) -> Rows:
        """Return the pairs of elements whose first was answered before the second was sent."""
        facts = self._facts
        everyone = _After(sends)
        # Compare moments of the same session by that session's clock alone.
        sessions: dict[int, list[_Moment]] = defaultdict(list)
        own: dict[int, int] = defaultdict(int)
        for moment in sends:
            sessions[facts.session[moment[1]]].append(moment)
            own[moment[1]] |= 1 << moment[2]
        by_session = {session: _After(moments) for session, moments in sessions.items()}
        rows: Rows = {}
        for time, t, element in answers:
            later = everyone.later_than(time)
            if facts.has_own_clocks and facts.session[t] in by_session:
                clock = facts.by_own_clock(time, t)
                later |= by_session[facts.session[t]].later_than(clock)
            rows[element] = later & ~own[t] if apart else later
        return rows

    def of_statements(self, name: str, event_of: Mapping[int, int]) -> Rows:
        """Return a relation that compares the times of statements."""
        facts, members = self._facts, self._members
        if not facts.has_moments:
            return {}
        times = {op: facts.statement_times(op) for op in event_of}
        sends = [(times[op][0], facts.txn_of[op], event) for op, event in event_of.items()]
        answers = [(times[op][1], facts.txn_of[op], event) for op, event in event_of.items()]
        if name == "committed-before":
            return self._precede([(facts.commit_answered(t), t, t) for t in members], sends)
        if name == "committed-after":
            return self._precede(answers, [(facts.commit_sent(t), t, t) for t in members])
        return self._precede(answers, sends, apart=False)
