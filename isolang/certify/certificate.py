"""The certificate file: a verdict, its proof, and what it takes to check it again elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import Struct, field

from isolang.certify.errors import CertificateRejected
from isolang.certify.proofs import (
    Exhaustion,
    Proof,
    Refutation,
    Relations,
    Witness,
    numbers_of,
    text_of,
)
from isolang.errors import IsolangError
from isolang.files import write_whole
from isolang.release import signature

if TYPE_CHECKING:
    from isolang.certify.verification import Acceptance
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec

_T = TypeVar("_T")

FORMAT = 1
# A certificate without a number of set-reads was made when at most this many became operations.
_ONCE_WRITTEN_OUT = 100_000


class CertificateError(IsolangError):
    """A certificate file that cannot be read, or that belongs to another history or spec."""


class Certificate(Struct, frozen=True, kw_only=True):
    """A verdict and its proof.

    Attributes:
        proof: why.
        history_name: what the history was called.
        history_sha256: of the bytes that were read.
        history_format: the format's name, as ``--from`` takes it.
        history_options: what else is needed to read it the same way.
        set_reads: which of its implicit set-reads became operations, as ``History.set_reads``;
            ``None`` if no set-read was implicit when the certificate was made.
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
    set_reads: tuple[tuple[int, int], ...] | Literal["all"] | None = None
    tool: str = ""

    @property
    def verdict(self) -> Literal["valid", "invalid"]:
        """The verdict that the certificate claims."""
        return "valid" if isinstance(self.proof, Witness | Relations) else "invalid"

    @classmethod
    def of(
        cls,
        history: History,
        spec: Spec,
        proof: Proof,
    ) -> Certificate:
        """The certificate of a verdict on ``history`` and ``spec``."""
        return cls(
            proof=proof,
            history_name=history.name,
            history_sha256=history.sha256,
            history_format=history.format,
            history_options=dict(history.options),
            set_reads=history.set_reads if history.columns.implicit else history.set_reads or None,
            spec_name=spec.name,
            spec_sha256=spec.sha256,
            spec_texts=dict(spec.texts),
            tool=signature("isolang"),
        )

    def about(self, history: History) -> History:
        """The history as the proof speaks of it, with the set-reads that it names as operations.

        Raises:
            CertificateRejected: it has no such set-reads.
        """
        import numpy as np

        if self.set_reads == "all" or (self.set_reads is None and self._is_of_all(history)):
            return history.written_out()
        if self.set_reads in (None, (), history.set_reads):
            return history
        try:
            return history.with_set_reads(np.array(self.set_reads, np.int32))
        except (ValueError, OverflowError) as error:
            raise CertificateRejected(f"set_reads: {error}") from None

    def _is_of_all(self, history: History) -> bool:
        """Return whether the version that made it wrote these set-reads out as it read a file."""
        if not history.columns.implicit:
            return False
        if isinstance(self.proof, Witness):
            return self.proof.commits is None
        whole = history.written_out().columns.operations()
        return bool(whole - history.columns.operations() <= _ONCE_WRITTEN_OUT)

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
            if self.proof.commits is not None and self.proof.seen is not None:
                proof["witness"]["commits"] = self.proof.commits.tolist()
                proof["witness"]["seen"] = self.proof.seen.tolist()
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
                    **({} if self.set_reads is None else {"set_reads": self.set_reads}),
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
                    path.open("x").close()  # reserves the name
                except FileExistsError:
                    if path.is_file() and path.read_text(encoding="utf-8") == text:
                        return path
                    number += 1
                else:
                    return _written(path, text)
        except OSError as error:
            raise CertificateError(f"{folder}: cannot write the certificate ({error})") from error

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate file.

        Raises:
            CertificateError: it cannot be read, is not a certificate, or has another version.
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
            CertificateError: it is not a certificate, or has another version.
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
            return _parsed(data, where)
        except CertificateRejected as error:
            raise CertificateError(f"{where}: {error}") from error


def verify(certificate: Certificate, history: History, spec: Spec) -> Acceptance:
    """Check a certificate against a history and a spec, with both checkers.

    Args:
        certificate: what to check.
        history: read again from its file.
        spec: the spec, lowered again from the certificate's texts.

    Returns:
        Which of the checkers accepts what.

    Raises:
        CertificateError: it is the certificate of another history or spec.
        CertificateRejected: the proof does not hold.
        NotCertifiedError: the spec or the history is beyond the checkers.
    """
    from isolang.certify.verification import accept

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
    return accept(certificate.about(history), spec, certificate.proof)


_PROOFS: Final = {
    "relations": ("valid", ("included", "chosen"), ()),
    "witness": ("valid", ("source", "order_start", "order_txn"), ("commits", "seen")),
    "exhaustion": ("invalid", ("transactions",), ()),
    "refutation": ("invalid", (), ()),
}
"""The fields of proofs: the verdict that each proves, what it must have, and what it may have."""


def _parsed(data: dict[str, Any], where: str) -> Certificate:
    """The certificate in a JSON object; a field that is missing, or unknown, is an error."""

    def of(raw: Any, path: str, read: Callable[[Any], _T]) -> _T:
        try:
            return read(raw)
        except (TypeError, ValueError, AttributeError, OverflowError, KeyError) as error:
            raise CertificateError(f"{where}: {path} has the wrong type ({error})") from None

    def fields(raw: Any, path: str, must: Sequence[str], may: Sequence[str] = ()) -> dict[str, Any]:
        if not isinstance(raw, dict):
            raise CertificateError(f"{where}: {path or 'it'} has the wrong type (expected a map)")
        dot = f"{path}." if path else ""
        for name in must:
            if name not in raw:
                raise CertificateError(f"{where}: the field {dot + name!r} is missing")
        if unknown := sorted(raw.keys() - {*must, *may}):
            raise CertificateError(
                f"{where}: the field {dot + unknown[0]!r:.60} is unknown (expected "
                f"{', '.join((*must, *may))}); was it made by a later version?"
            )
        return raw

    if "verdict" not in data:
        raise CertificateError(f"{where}: the field 'verdict' is missing")
    verdict = data["verdict"]
    if verdict not in ("valid", "invalid"):
        raise CertificateError(f"{where}: verdict {verdict!r:.20} (expected valid or invalid)")
    kinds = [name for name, (proved, *_) in _PROOFS.items() if proved == verdict]
    kind = next((name for name in kinds if name in data), kinds[-1])
    fields(data, "", ("format", "tool", "verdict", "history", "spec", kind))
    history = fields(
        data["history"], "history", ("name", "sha256", "format", "options"), ("set_reads",)
    )
    spec = fields(data["spec"], "spec", ("name", "sha256", "texts"))
    raw = data[kind]
    if kind != "refutation":
        fields(raw, kind, *_PROOFS[kind][1:])
    return Certificate(
        proof=of(raw, kind, _READ[kind]),
        history_name=of(history["name"], "history.name", text_of),
        history_sha256=of(history["sha256"], "history.sha256", text_of),
        history_format=of(history["format"], "history.format", text_of),
        history_options=of(history["options"], "history.options", _map_of),
        set_reads=of(history.get("set_reads"), "history.set_reads", _set_reads),
        spec_name=of(spec["name"], "spec.name", text_of),
        spec_sha256=of(spec["sha256"], "spec.sha256", text_of),
        spec_texts={
            name: of(text, f"spec.texts.{name:.40}", text_of)
            for name, text in of(spec["texts"], "spec.texts", _map_of).items()
        },
        tool=of(data["tool"], "tool", text_of),
    )


def _witness(raw: dict[str, Any]) -> Witness:
    return Witness.of(**{name: numbers_of(numbers) for name, numbers in raw.items()})


_READ: Final[Mapping[str, Callable[[Any], Proof]]] = {
    "relations": Relations.parse,
    "witness": _witness,
    "exhaustion": lambda raw: Exhaustion(tuple(numbers_of(raw["transactions"]))),
    "refutation": Refutation.of,
}


def _map_of(raw: Any) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise TypeError(f"expected a map, got {raw!r:.40}")
    return raw


def _set_reads(raw: Any) -> tuple[tuple[int, int], ...] | Literal["all"] | None:
    if raw is None:
        return None
    if raw == "all":
        return "all"
    pairs = [numbers_of(pair) for pair in raw]
    return tuple((s, key) for s, key in pairs)


def _written(path: Path, text: str) -> Path:
    try:
        write_whole(path, text)
    except OSError:
        path.unlink()
        raise
    return path
