"""Collects the numbered steps of a kernel refutation, and finds the steps that imply a clause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from isolang.certify.kernel_text import unsupported


class Clauses:
    """The steps added so far, each with the clause it proves.

    A literal is a positive number, and its negation is the negative number. A clause is a list of
    literals. Steps are numbered from 1, in the order they were added.
    """

    def __init__(self) -> None:
        self.steps: list[str] = []
        # index 0 is unused, because steps are numbered from 1
        self._clauses: list[list[int]] = [[]]
        self._with: defaultdict[int, list[int]] = defaultdict(list)  # literal -> steps
        self._units: list[int] = []
        self._is_done = False

    @property
    def is_done(self) -> bool:
        """Return whether some step has proved the empty clause, which ends the refutation."""
        return self._is_done

    def add(self, text: str, clause: list[int]) -> None:
        """Add a step that proves ``clause``; ``text`` is its line in the kernel's input."""
        if self._is_done:
            return  # the proof is complete, and the kernel reads no further
        self._is_done = not clause
        place = len(self._clauses)
        self.steps.append(text)
        self._clauses.append(clause)
        literals = set(clause)
        for literal in literals:
            self._with[literal].append(place)
        if len(literals) == 1:
            self._units.append(place)

    def propagate(self, clause: list[int]) -> bool:
        """Try to prove a clause by unit propagation; if that works, add the step.

        Return whether it worked.
        """
        clause = list(dict.fromkeys(clause))
        if any(-literal in clause for literal in clause):
            raise unsupported("a step that is always true")
        true: set[int] = set()
        reason: dict[int, int] = {}
        trail: list[int] = []

        def assign(literal: int, step: int | None) -> None:
            if literal not in true:
                true.add(literal)
                trail.append(literal)
                if step is not None:
                    reason[literal] = step

        def rest(step: int) -> list[int] | None:
            """Return the literals in a clause that may still become true, at most one.

            Return ``None`` if the clause has a true literal, or two literals without a value.
            """
            free = 0
            for literal in self._clauses[step]:
                if -literal in true or literal == free:
                    continue
                if free or literal in true:
                    return None
                free = literal
            return [free] if free else []

        def conflict() -> int | None:
            for literal in clause:
                assign(-literal, None)
            done = -1
            waiting = self._units
            while True:
                for step in waiting:
                    unset = rest(step)
                    if unset == []:
                        return step
                    if unset:
                        assign(unset[0], step)
                done += 1
                if done == len(trail):
                    return None
                waiting = self._with[-trail[done]]

        if (last := conflict()) is None:
            return False
        hints = [last]
        needed = {-literal for literal in self._clauses[last]}
        for literal in reversed(trail):
            if literal in needed and literal in reason:
                hints.append(reason[literal])
                needed |= {-other for other in self._clauses[reason[literal]] if other != literal}
        hints = list(dict.fromkeys(reversed(hints)))
        self.add(f"rup {format_numbers(clause)} {format_numbers(hints)}", clause)
        return True


def format_numbers(numbers: Sequence[int]) -> str:
    """Return numbers in the kernel's input format: the count, followed by the numbers."""
    return " ".join(map(str, (len(numbers), *numbers)))
