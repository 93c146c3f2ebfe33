"""The certificate file: a verdict, its proof, and what it takes to check it again elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isolang.certify.errors import CertificateRejected
from isolang.errors import IsolangError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.certify.steps import Step
    from isolang.history.history import History
    from isolang.language.core import Spec

FORMAT = 1


class CertificateError(IsolangError):
    """A certificate file that cannot be read, or that belongs to another history or spec."""


@dataclass(frozen=True, slots=True, eq=False)
class Witness:
    """Why a history is valid: where each read reads from, and the version orders.

    Attributes:
        source: int32 per operation, the transaction that an external read of an included
            transaction reads from (T0 is number n), else -1.
        order_start: int64 per key, where its writers begin in ``order_txn``; one entry more than
            keys.
        order_txn: int32, the included writers of each key in version order, T0 left out.
    """

    source: NDArray[np.int32]
    order_start: NDArray[np.int64]
    order_txn: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        source: Sequence[int] | NDArray[np.integer[Any]],
        order_start: Sequence[int] | NDArray[np.integer[Any]],
        order_txn: Sequence[int] | NDArray[np.integer[Any]],
    ) -> Witness:
        """A witness from any sequences of whole numbers.

        Raises:
            OverflowError: a number does not fit.
        """
        import numpy as np

        return cls(
            np.ascontiguousarray(source, dtype=np.int32),
            np.ascontiguousarray(order_start, dtype=np.int64),
            np.ascontiguousarray(order_txn, dtype=np.int32),
        )


@dataclass(frozen=True, slots=True)
class Refutation:
    """Why a history is invalid: clauses that follow one after the other, the last one empty."""

    steps: tuple[Step, ...]

    @classmethod
    def of(cls, steps: Sequence[Any]) -> Refutation:
        """A refutation from plain steps.

        Raises:
            CertificateRejected: one of them is no step.
        """
        from isolang.certify.steps import parse_step

        return cls(tuple(parse_step(step) for step in steps))

    def plain(self) -> list[tuple[Any, ...]]:
        """The steps as the checkers take them and files hold them."""
        return [step.plain() for step in self.steps]


@dataclass(frozen=True, slots=True)
class Relations:
    """Why a history is valid: the relations that a specification asks for.

    Attributes:
        included: the transactions that are included, T0 left out.
        chosen: per ``exists`` name and key (-1 if it has none) the pairs; ``check_relations`` says
            which, and how elements are numbered.
    """

    included: tuple[int, ...]
    chosen: Mapping[str, Mapping[int, tuple[tuple[int, int], ...]]]

    def plain(self) -> dict[str, Any]:
        """What files hold."""
        chosen = {
            name: {str(key): [list(pair) for pair in pairs] for key, pairs in by_key.items()}
            for name, by_key in self.chosen.items()
        }
        return {"included": list(self.included), "chosen": chosen}

    @classmethod
    def parse(cls, raw: Any) -> Relations:
        """Read what files hold.

        Raises:
            KeyError, TypeError, ValueError: it is something else.
        """
        chosen = {
            _text(name): {
                int(key): tuple(_pair(pair) for pair in pairs) for key, pairs in by_key.items()
            }
            for name, by_key in raw["chosen"].items()
        }
        return cls(tuple(_numbers(raw["included"])), chosen)


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """Why a history is invalid: nothing that can be chosen for a few transactions does.

    Attributes:
        transactions: these few; what is chosen for them is what one tries on their part alone.
    """

    transactions: tuple[int, ...]


Proof: TypeAlias = Witness | Refutation | Relations | Exhaustion
"""A witness or relations prove *valid*, a refutation or an exhaustion *invalid*."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A verdict and its proof.

    Attributes:
        proof: why.
        history_name: what the history was called.
        history_sha256: of the bytes that were read.
        history_format: the format's name, as ``--from`` takes it.
        history_options: what else is needed to read it the same way.
        spec_name: the spec's name.
        spec_sha256: over all texts of the spec.
        spec_texts: file name to text, in the order of reading.
        tool: who made the certificate.
    """

    proof: Proof
    history_name: str
    history_sha256: str
    history_format: str
    spec_name: str
    spec_sha256: str
    spec_texts: Mapping[str, str]
    history_options: Mapping[str, Any] = field(default_factory=dict)
    tool: str = ""

    @property
    def verdict(self) -> Literal["valid", "invalid"]:
        """What the certificate claims."""
        return "valid" if isinstance(self.proof, Witness | Relations) else "invalid"

    @classmethod
    def of(
        cls,
        history: History,
        spec: Spec,
        proof: Proof,
        options: Mapping[str, Any] | None = None,
    ) -> Certificate:
        """The certificate of a verdict on ``history`` and ``spec``."""
        return cls(
            proof=proof,
            history_name=history.name,
            history_sha256=history.sha256,
            history_format=history.format,
            history_options=dict(options or {}),
            spec_name=spec.name,
            spec_sha256=spec.sha256,
            spec_texts=dict(spec.texts),
            tool=_tool(),
        )

    def to_json(self) -> str:
        """The text of the file: one JSON object."""
        proof: dict[str, Any]
        if isinstance(self.proof, Witness):
            proof = {
                "witness": {
                    "source": self.proof.source.tolist(),
                    "order_start": self.proof.order_start.tolist(),
                    "order_txn": self.proof.order_txn.tolist(),
                }
            }
        elif isinstance(self.proof, Relations):
            proof = {"relations": self.proof.plain()}
        elif isinstance(self.proof, Exhaustion):
            proof = {"exhaustion": {"transactions": list(self.proof.transactions)}}
        else:
            proof = {"refutation": self.proof.plain()}
        return json.dumps(
            {
                "format": FORMAT,
                "tool": self.tool,
                "verdict": self.verdict,
                "history": {
                    "name": self.history_name,
                    "sha256": self.history_sha256,
                    "format": self.history_format,
                    "options": dict(self.history_options),
                },
                "spec": {
                    "name": self.spec_name,
                    "sha256": self.spec_sha256,
                    "texts": dict(self.spec_texts),
                },
                **proof,
            }
        )

    def save(self, directory: str | Path) -> Path:
        """Write the certificate into ``directory`` (made if missing) and return its path.

        The name tells history and spec; a number is added rather than another certificate replaced.

        Raises:
            CertificateError: it cannot be written.
        """
        folder = Path(directory)
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{Path(self.history_name).name}.{self.spec_name}")
        stem = stem.strip("-.") or "certificate"
        text = self.to_json()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            number = 1
            while True:
                suffix = f"-{number}" if number > 1 else ""
                path = folder / f"{stem}{suffix}.certificate.json"
                try:
                    with path.open("x", encoding="utf-8") as file:
                        file.write(text)
                except FileExistsError:
                    if path.is_file() and path.read_text(encoding="utf-8") == text:
                        return path
                    number += 1
                else:
                    return path
        except OSError as error:
            raise CertificateError(f"{folder}: cannot write the certificate ({error})") from error

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate file.

        Raises:
            CertificateError: it cannot be read, is no certificate, or is of another version.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CertificateError(f"{path}: cannot read the certificate ({error})") from error
        return cls.from_json(text, where=str(path))

    @classmethod
    def from_json(cls, text: str, *, where: str = "<certificate>") -> Certificate:
        """The certificate in a file's text; ``where`` names it in messages.

        Raises:
            CertificateError: it is no certificate, or is of another version.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CertificateError(f"{where}: not JSON ({error})") from error
        if not isinstance(data, dict) or "format" not in data:
            raise CertificateError(
                f"{where}: no certificate; a file that --certificate saved is one"
            )
        if data["format"] != FORMAT or isinstance(data["format"], bool):
            raise CertificateError(
                f"{where}: certificate format {data['format']!r:.20} (expected {FORMAT}); "
                "it was made by another version"
            )
        try:
            history, spec, verdict = data["history"], data["spec"], data["verdict"]
            proof: Proof
            if verdict == "valid" and "relations" in data:
                proof = Relations.parse(data["relations"])
            elif verdict == "invalid" and "exhaustion" in data:
                proof = Exhaustion(tuple(_numbers(data["exhaustion"]["transactions"])))
            elif verdict == "valid":
                witness = data["witness"]
                proof = Witness.of(
                    source=_numbers(witness["source"]),
                    order_start=_numbers(witness["order_start"]),
                    order_txn=_numbers(witness["order_txn"]),
                )
            elif verdict == "invalid":
                proof = Refutation.of(data["refutation"])
            else:
                raise CertificateError(
                    f"{where}: verdict {verdict!r:.20} (expected valid or invalid)"
                )
            return cls(
                proof=proof,
                history_name=_text(history["name"]),
                history_sha256=_text(history["sha256"]),
                history_format=_text(history["format"]),
                history_options=dict(history["options"]),
                spec_name=_text(spec["name"]),
                spec_sha256=_text(spec["sha256"]),
                spec_texts={_text(k): _text(v) for k, v in spec["texts"].items()},
                tool=_text(data["tool"]),
            )
        except KeyError as error:
            raise CertificateError(f"{where}: the field {error} is missing") from error
        except CertificateRejected as error:
            raise CertificateError(f"{where}: {error}") from error
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CertificateError(f"{where}: a field has the wrong type ({error})") from error


def verify(certificate: Certificate, history: History, spec: Spec) -> None:
    """Check a certificate against a history and a spec, with the checkers in plain Python.

    Args:
        certificate: what to check.
        history: read again from its file.
        spec: the spec, lowered again from the certificate's texts.

    Raises:
        CertificateError: it is the certificate of another history or spec.
        CertificateRejected: the proof does not hold.
        NotCertifiedError: the spec or the history is beyond the checkers.
    """
    if certificate.history_sha256 != history.sha256:
        raise CertificateError(
            f"{history.name}: not the history of this certificate (got sha256 "
            f"{history.sha256 or 'none'}, expected {certificate.history_sha256 or 'none'} "
            f"of {certificate.history_name})"
        )
    if certificate.spec_sha256 != spec.sha256:
        raise CertificateError(
            f"{spec.source}: not the spec of this certificate (got sha256 {spec.sha256 or 'none'}, "
            f"expected {certificate.spec_sha256 or 'none'} of {certificate.spec_name})"
        )
    check_proof(history, spec, certificate.proof)


def check_proof(history: History, spec: Spec, proof: Proof, seconds: float | None = None) -> None:
    """Check a proof with the checkers in plain Python.

    Args:
        history: what it is about.
        spec: the lowered spec.
        proof: what to check.
        seconds: after which an exhaustion is given up; ``None`` for no limit.

    Raises:
        CertificateRejected: it does not hold.
        NotCertifiedError: the spec or the history is beyond the checkers.
    """
    from isolang.certify.exhaustion import check_exhaustion
    from isolang.certify.refutation import check_refutation
    from isolang.certify.relations import check_relations
    from isolang.certify.witness import check_witness
    from isolang.language.theorems import event_graph_form

    if isinstance(proof, Witness | Refutation):
        # Those speak of version orders; a theorem may say that the spec does, too.
        theorem = event_graph_form(spec)
        spec = spec if theorem is None else theorem.spec
    if isinstance(proof, Witness):
        check_witness(history, spec, proof.source, proof.order_start, proof.order_txn)
    elif isinstance(proof, Relations):
        check_relations(history, spec, proof.included, proof.chosen)
    elif isinstance(proof, Exhaustion):
        check_exhaustion(history, spec, proof.transactions, seconds=seconds)
    else:
        check_refutation(history, spec, proof.steps)


def _numbers(raw: Any) -> list[int]:
    if not isinstance(raw, list) or any(type(i) is not int for i in raw):
        raise TypeError("expected a list of whole numbers")
    return raw


def _pair(raw: Any) -> tuple[int, int]:
    first, second = _numbers(raw)
    return first, second


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        raise TypeError(f"expected text, got {raw!r:.40}")
    return raw


def _tool() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"isolang {version('isolang')}"
    except PackageNotFoundError:
        return "isolang"
