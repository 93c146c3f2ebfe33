"""Translates a bank: ``:transfer {:from a, :to b, :amount n}``, and ``:read`` of all balances.

Balances do not show which transfers produced them, so they do not determine reads and writes of
accounts. But transfers preserve the total of all balances. Therefore the translated history has
only one key, the total, which no transaction writes and every read of all accounts reads. At
parallel snapshot isolation and stronger levels, a transaction sees either all or none of another
transaction's effects, and no update is lost. Therefore two reads with different totals violate
these levels. At weaker levels the totals may differ, so isocheck does not judge these levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from isolang.history.readers.reading import quantity
from isolang.history.readers.workloads.operations import PairedOperation, Translation
from isolang.history.values import Keyword, preview

KEEP_THE_TOTAL: Final = (
    *("psi", "psi-nosession", "psi-vis", "psi-vis-nosession", "rss", "rss-nosession"),
    *(
        level + form + sessions
        for level in ("si", "strong-si", "ser", "sser")
        for form in ("", "-co", "-vis")
        for sessions in ("", "-nosession")
    ),
    *("pl-3", "pl-3u", "pl-fcv"),
)
"""The levels at which every read of all accounts sees the same total: PSI and stronger levels."""


class Totals(Translation):
    """Translates reads of all balances to reads of their total."""

    what = "a bank, with transfers and reads of all balances"
    initial = "a read of the total"
    levels = KEEP_THE_TOTAL

    def fill(self) -> None:
        """Translate all operations."""
        done = self._ops.done
        grouped = self.split()
        balances = {id(d): self._balances(d) for d in done if d.function == "read"}
        accounts: dict[Any, set[Any]] = {}
        for d in done:
            accounts.setdefault(d.group, set()).update(balances.get(id(d)) or ())
        totals = {
            id(d): sum(found.values())
            for d in done
            if (found := balances.get(id(d))) is not None
            and len(found) == len(accounts[d.group])
            and None not in found.values()
        }
        usual = {
            group: Counter(totals[id(d)] for d in done if d.group == group and id(d) in totals)
            for group in accounts
        }
        for d in done:
            self.sink.begin(d)
            if id(d) in totals:
                total = usual[d.group].most_common(1)[0][0]
                name = Keyword("total")
                key = self.sink.key((d.group, name) if grouped else name, total)
                self.sink.read(key, self.sink.value(totals[id(d)]), d.line)
        self._note(balances, totals, usual)

    def _balances(self, d: PairedOperation) -> Mapping[Any, Any] | None:
        """Return the balances returned by a read, by account; ``None`` if the read failed."""
        if not d.answered:
            return None
        if not isinstance(d.value, Mapping):
            what = f"not a :read of a bank (got {preview(d.value)}, expected a map from account to"
            raise self._ops.fail(d.line, f"{what} balance)")
        for account, balance in d.value.items():
            if balance is not None and (isinstance(balance, bool) or not isinstance(balance, int)):
                what = (
                    f"wrong balance of account {preview(account)} (got {preview(balance)}, expected"
                )
                raise self._ops.fail(d.line, f"{what} an integer)")
        return d.value

    def _note(
        self,
        balances: Mapping[int, Mapping[Any, Any] | None],
        totals: Mapping[int, int],
        usual: Mapping[Any, Counter[int]],
    ) -> None:
        self.notes.append(
            "for each read of all accounts, only the total is checked, because transfers "
            "preserve it; balances do not show which transfers a read saw"
        )
        for group, seen in usual.items():
            if len(seen) > 1:
                (most, often), *_ = seen.most_common(1)
                of = "" if group is None else f" of {preview(group)}"
                self.notes.append(
                    f"the total{of} is taken to be {most}, as {often} of "
                    f"{seen.total()} reads show; the file does not state the total"
                )
        partial = sum(found is not None for found in balances.values()) - len(totals)
        if partial:
            reads = quantity(partial, "read")
            self.notes.append(
                f"{reads} without the balance of each account, which have no total to check"
            )
        negative = sum(
            any(b is not None and b < 0 for b in found.values())
            for found in balances.values()
            if found is not None
        )
        if negative:
            reads = quantity(negative, "read")
            self.notes.append(f"{reads} of a negative balance, which the program may allow")
