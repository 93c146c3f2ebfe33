"""Unit propagation on a growing set of clauses, with two watched literals (Moskewicz et al. 2001).

Literals are integers: ``2 * v`` says that variable v is true, and ``2 * v + 1`` says that it is
false. Variable 0 is the constant *true*.
"""

from __future__ import annotations

from collections.abc import Iterable

TRUE, FALSE = 0, 1


class Propagation:
    """A set of clauses, and the literals derived from it by unit propagation."""

    def __init__(self) -> None:
        self.contradictory = False
        # for each literal, whether it holds under the current assignment
        self._holds = [True, False]
        self._watches: list[list[list[int]]] = [[], []]
        # for each variable, the group that contains its positive literal
        self._group: list[list[int] | None] = [None]
        self._trail: list[int] = []
        self._done = 0

    def variable(self, group: list[int] | None = None) -> int:
        """Add a variable and return its positive literal.

        At most one of the literals in a group holds.
        """
        self._holds += [False, False]
        self._watches += [[], []]
        self._group.append(group)
        literal = 2 * (len(self._group) - 1)
        if group is not None:
            if any(self._holds[other] for other in group):
                self._assign(literal + 1)
            group.append(literal)
        return literal

    def add(self, clause: Iterable[int]) -> None:
        """Add a clause, and derive the literals that follow by unit propagation."""
        literals = list(dict.fromkeys(clause))
        if TRUE in literals or any(literal ^ 1 in literals for literal in literals):
            return
        free = [lit for lit in literals if not self._holds[lit ^ 1]]
        if any(self._holds[lit] for lit in free):
            return  # SOUND BECAUSE a literal that holds without assumptions always holds
        if len(free) > 1:
            for lit in free[:2]:
                self._watches[lit].append(free)
            return
        if not free:
            self.contradictory = True
            return
        self._assign(free[0])
        self.contradictory |= self._conflict()

    def implies(self, clause: Iterable[int]) -> bool:
        """Return whether unit propagation proves a clause.

        The function assumes the negation of each literal in the clause, and looks for a conflict.
        """
        if self.contradictory:
            return True
        mark = len(self._trail)
        conflict = False
        for literal in clause:
            if self._holds[literal]:
                conflict = True
                break
            if not self._holds[literal ^ 1]:
                self._assign(literal ^ 1)
        conflict = conflict or self._conflict()
        for literal in self._trail[mark:]:
            self._holds[literal] = False
        del self._trail[mark:]
        self._done = mark
        return conflict

    def _assign(self, literal: int) -> None:
        self._holds[literal] = True
        self._trail.append(literal)

    def _conflict(self) -> bool:
        """Propagate all assigned literals, and return whether a clause or a group is violated."""
        holds, watches = self._holds, self._watches
        while self._done < len(self._trail):
            literal = self._trail[self._done]
            self._done += 1
            group = self._group[literal >> 1]
            if group is not None and not literal & 1:
                for other in group:
                    if other == literal:
                        continue
                    if holds[other]:
                        return True
                    if not holds[other + 1]:
                        self._assign(other + 1)
            false = literal ^ 1
            watching, watches[false] = watches[false], []
            kept = watches[false]
            for i, clause in enumerate(watching):
                if clause[0] == false:
                    clause[0], clause[1] = clause[1], clause[0]
                if holds[clause[0]]:
                    kept.append(clause)
                    continue
                for j in range(2, len(clause)):
                    if not holds[clause[j] ^ 1]:
                        clause[1], clause[j] = clause[j], clause[1]
                        watches[clause[1]].append(clause)
                        break
                else:
                    kept.append(clause)
                    if holds[clause[0] ^ 1]:
                        kept.extend(watching[i + 1 :])
                        return True
                    self._assign(clause[0])
        return False
