"""The encodings, one line each; they are imported when they are used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from isolang.encodings.formula import Formula, Theory
    from isolang.encodings.relational.formula import RelationalInput
    from isolang.problem.polygraph import Polygraph


class Encoding(Struct, frozen=True, kw_only=True):
    """One way to put a problem to a solver.

    Attributes:
        name: as users type it.
        makers: per theory that it can be expressed in, ``module:function``.
        source: who proposed it.
        of: what it starts from: the polygraph that pruning leaves of an event graph; or any
            specification as it is written (a ``Question``), unpruned.
    """

    name: str
    makers: Mapping[Theory, str]
    source: str
    of: Literal["polygraph", "specification"] = "polygraph"

    def encode(
        self, subject: Polygraph | RelationalInput, theory: Theory, *, until: float | None = None
    ) -> Formula:
        """Encode for a solver of some theory, one of ``makers``.

        Args:
            subject: what ``of`` says.
            theory: of the formula.
            until: a moment of ``time.perf_counter``.

        Raises:
            TimeoutError: that moment came.
            UnsupportedError: it would be too much.
        """
        module, function = self.makers[theory].split(":")
        formula: Formula = getattr(import_module(module), function)(subject, until=until)
        return formula


def _row(
    name: str, source: str, of: Literal["polygraph", "specification"] = "polygraph", **makers: str
) -> Encoding:
    there = {theory: f"isolang.encodings.{maker}" for theory, maker in makers.items()}
    return Encoding(name=name, makers=there, source=source, of=of)  # type: ignore[arg-type]


RELATIONAL: Final = "relational"


ENCODINGS: Final[dict[str, Encoding]] = {
    row.name: row
    for row in (
        _row("one_variable", "Vbox", acyclicity="one_variable:encode"),
        _row("monosat", "Cobra", acyclicity="monosat:encode"),
        _row("monosat+raw", "Papadimitriou; Cobra's baseline", acyclicity="monosat:encode_raw"),
        _row("hyper_polygraph", "VeriStrong", acyclicity="hyper_polygraph:encode"),
        _row(
            "hyper_polygraph+2width",
            "VeriStrong",
            acyclicity="hyper_polygraph:encode_with_2width",
        ),
        _row("integer_order", "difference logic", difference="integer_order:encode"),
        _row(
            "binary_labeling",
            "Janota, Grigore, Manquinho; Cobra's Z3 baseline",
            none="binary_labeling:encode",
            bitvector="binary_labeling:encode_bitvector",
        ),
        _row(
            RELATIONAL,
            "Kodkod's bounds",
            of="specification",
            acyclicity="relational.formula:encode",
            difference="relational.formula:encode_difference",
            bitvector="relational.formula:encode_bitvector",
            none="relational.formula:encode_plain",
        ),
    )
}
