"""The list of encodings; the module of an encoding is imported when it is used."""

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
    """A translation of a problem to a solver's input.

    Attributes:
        name: the name that users type.
        makers: the function that encodes, as ``module:function``, for each theory that can express
            the encoding.
        source: the authors or tool that proposed the encoding.
        of: the input: the polygraph that pruning leaves of an event graph, or any specification as
            it is written (a ``RelationalInput``), without pruning.
    """

    name: str
    makers: Mapping[Theory, str]
    source: str
    of: Literal["polygraph", "specification"] = "polygraph"

    def encode(
        self, subject: Polygraph | RelationalInput, theory: Theory, *, until: float | None = None
    ) -> Formula:
        """Return the formula of a problem for solvers of a theory.

        Args:
            subject: the input that ``of`` names.
            theory: the theory of the formula, one of ``makers``.
            until: the time of ``time.perf_counter`` at which to give up; ``None`` for no limit.

        Raises:
            TimeoutError: the time is past ``until``.
            UnsupportedError: the formula would be too large.
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
