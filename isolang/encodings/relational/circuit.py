"""Boolean circuits of and-gates with sharing of equal gates, and the clauses that define them.

Literals follow DIMACS: variables are numbered from 1, and ``-v`` is the negation of v. ``TRUE`` is
variable 1. A disjunction is a negated conjunction. Clauses define a gate only if another clause
contains it, and only in the direction required by that clause (D. Plaisted, S. Greenbaum, *A
structure-preserving clause form translation*, 1986).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

TRUE = 1
FALSE = -1

# a gate with at most this many inputs may be replaced in clauses by its inputs
_SMALL = 4
_TIMES = 2  # the number of times a gate may be replaced by its inputs before clauses define it


class Circuit:
    """Variables, gates over them, and clauses."""

    def __init__(self) -> None:
        """Create a circuit with a single variable, ``TRUE``."""
        self.variables = 1
        self.clauses = array("i", (TRUE, 0))
        self._inputs: dict[int, tuple[int, ...]] = {}
        self._pairs: set[int] = set()
        self._gate: dict[tuple[int, ...], int] = {}
        # For each gate, the directions defined by clauses: 1 for "gate => inputs", 2 for "inputs =>
        # gate", and 3 for both.
        self._stated: dict[int, int] = {}
        self._unfolded_times: dict[tuple[int, int], int] = {}

    def new(self) -> int:
        """Create and return a variable not defined by any gate."""
        self.variables += 1
        return self.variables

    def pair(self) -> int:
        """Create two variables for the two orders of a pair of elements, and return the first.

        If both variables are false, the order of the elements is undecided.
        """
        self.variables += 2
        self._pairs.add(self.variables - 1)
        return self.variables - 1

    def decided(self, literal: int) -> int:
        """Return the literal that tells solvers that ``literal`` has been decided to be true.

        For the negation of the first variable of a :meth:`pair`, this is the second variable.
        """
        return 1 - literal if -literal in self._pairs else literal

    def value(self, literal: int, model: Sequence[int]) -> bool:
        """Return the value of a literal in a model; a gate's value follows from its inputs."""
        inputs = self._inputs.get(abs(literal))
        if inputs is None:
            return bool(model[abs(literal)]) == (literal > 0)
        return all(self.value(a, model) for a in inputs) == (literal > 0)

    def is_gate(self, variable: int) -> bool:
        """Return whether a variable is the output of a gate."""
        return variable in self._inputs

    def both(self, a: int, b: int) -> int:
        """Return a literal for ``a and b``."""
        if a in (TRUE, b):
            return b
        if b == TRUE:
            return a
        if FALSE in (a, b) or a == -b:
            return FALSE
        return self._and((a, b) if a < b else (b, a))

    def all_of(self, literals: Iterable[int]) -> int:
        """Return a literal that is true iff all given literals are true."""
        inputs = set(literals)
        inputs.discard(TRUE)
        if FALSE in inputs or any(-a in inputs for a in inputs):
            return FALSE
        if not inputs:
            return TRUE
        if len(inputs) == 1:
            return inputs.pop()
        return self._and(tuple(sorted(inputs)))

    def any_of(self, literals: Iterable[int]) -> int:
        """Return a literal that is true iff at least one of the given literals is true."""
        return -self.all_of([-a for a in literals])

    def _and(self, inputs: tuple[int, ...]) -> int:
        gate = self._gate.get(inputs)
        if gate is None:
            gate = self.new()
            self._gate[inputs] = gate
            self._inputs[gate] = inputs
        return gate

    def state(self, literals: Sequence[int]) -> None:
        """Add a clause. Replace each gate in it with its inputs, or define the gate by clauses."""
        # A clause consists of a head and other literals. The head is the literal of the gate
        # defined by the clause and is never replaced; it is 0 if the clause defines no gate.
        todo: list[tuple[int, tuple[int, ...]]] = [(0, tuple(literals))]
        while todo:
            head, rest = todo.pop()
            flat = self._unfolded(rest)
            if flat is None:
                continue
            # `x or (a and b and …)` becomes one clause for each input of the conjunction.
            wide = next((a for a in flat if a > 0 and self._unfolds(a, 1)), 0)
            if wide:
                others = tuple(a for a in flat if a != wide)
                todo.extend((head, (*others, a)) for a in self._inputs[wide])
                continue
            if head:
                self.clauses.append(head)
            self.clauses.extend(map(self.decided, flat) if self._pairs else flat)
            self.clauses.append(0)
            for a in flat:
                if abs(a) in self._inputs:
                    self._define(abs(a), 1 if a > 0 else 2, todo)

    def at_most_one(self, literals: Sequence[int]) -> None:
        """Require that at most one of the literals is true.

        For a few literals, there is a clause for each pair. For many, there is a variable for each
        prefix (C. Sinz, CP 2005).
        """
        if len(literals) <= 6:
            for j, b in enumerate(literals):
                for a in literals[:j]:
                    self.state((-a, -b))
            return
        before = literals[0]
        for literal in literals[1:]:
            self.state((-before, -literal))
            now = self.new()
            self.state((-before, now))
            self.state((-literal, now))
            before = now

    def _unfolds(self, gate: int, direction: int) -> bool:
        """Return whether to replace a gate with its inputs instead of defining it.

        Each replacement counts toward a limit.
        """
        inputs = self._inputs.get(gate)
        if inputs is None or len(inputs) > _SMALL or self._stated.get(gate, 0) & direction:
            return False
        times = self._unfolded_times.get((gate, direction), 0)
        self._unfolded_times[gate, direction] = times + 1
        return times < _TIMES

    def _unfolded(self, literals: tuple[int, ...]) -> list[int] | None:
        """Replace negated small gates in a clause with their inputs, and remove constants.

        Return ``None`` if the clause is always true.
        """
        flat: dict[int, None] = {}
        stack = list(literals)
        while stack:
            a = stack.pop()
            if a == FALSE:
                continue
            if a == TRUE:
                return None
            if a < 0 and self._unfolds(-a, 2):
                stack.extend(-b for b in self._inputs[-a])
                continue
            if -a in flat:
                return None
            flat[a] = None
        return list(flat)

    def _define(self, gate: int, direction: int, todo: list[tuple[int, tuple[int, ...]]]) -> None:
        stated = self._stated.get(gate, 0)
        if stated & direction:
            return
        self._stated[gate] = stated | direction
        inputs = self._inputs[gate]
        if direction == 1:
            todo.extend((-gate, (a,)) for a in inputs)
        else:
            todo.append((gate, tuple(-a for a in inputs)))

    def alias_of(self, literal: int) -> int:
        """Return a new variable that is true iff ``literal`` is true, for use in assumptions."""
        same = self.new()
        self.state((-same, literal))
        self.state((same, -literal))
        return same

    def guard(self, literal: int) -> int:
        """Return the literal that tells solvers that ``literal`` has not been decided to be false.

        This is the literal for an edge of a graph that must be acyclic. If the order of a pair is
        undecided, the edges for both orders are present.
        """
        if abs(literal) not in self._inputs:
            return -self.decided(-literal)
        plain = self.new()
        self.state((plain, -literal))
        return plain
