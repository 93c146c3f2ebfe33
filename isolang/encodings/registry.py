"""The table of encodings. An encoding's module is imported only when the encoding is used."""

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
    """A translation of a problem into solver input.

    Attributes:
        name: the name by which users select the encoding.
        makers: for each theory that can express the encoding, the encoding function, as
            ``module:function``.
        source: the authors or the tool that proposed the encoding.
        of: ``polygraph`` if the input is an event graph's polygraph after pruning, or
            ``specification`` if it is a ``RelationalInput``, with any specification.
    """

    name: str
    makers: Mapping[Theory, str]
    source: str
    of: Literal["polygraph", "specification"] = "polygraph"

    def encode(
        self, subject: Polygraph | RelationalInput, theory: Theory, *, until: float | None = None
    ) -> Formula:
        """Encode an input as a formula in a theory.

        Args:
            subject: the input, of the kind named by ``of``.
            theory: the theory of the formula, which must be a key of ``makers``.
            until: the ``time.perf_counter()`` value at which to give up; ``None`` for no limit.

        Raises:
            TimeoutError: if ``until`` has passed.
            UnsupportedError: if the formula would be too large.
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
