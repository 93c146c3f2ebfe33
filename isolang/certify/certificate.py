"""Reads and writes certificates: files with a verdict, its proof, and the data to check it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import Struct, field

from isolang.arrays import np
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
from isolang.files import write_atomically
from isolang.history.not_seen import unseen_reason
from isolang.release import signature

if TYPE_CHECKING:
    from isolang.certify.verification import Acceptance
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec

_T = TypeVar("_T")

FORMAT = 1
# Old releases wrote certificates without ``set_reads``. They turned all set-reads into operations
# if there were at most this many.
_ONCE_WRITTEN_OUT = 100_000


class CertificateError(IsolangError):
    """Raised when a certificate cannot be used: it is unreadable, or belongs to another history."""


class Certificate(Struct, frozen=True, kw_only=True):
    """A verdict with its proof, and with the hashes of the history and the specification.

    Attributes:
        proof: the proof, which also determines whether the verdict is valid or invalid.
        history_name: the name of the history.
        history_sha256: the SHA-256 of the history's bytes as read.
        history_format: the format name to pass to ``--from`` to read the history again.
        history_options: the other options used to read the history, by name.
        set_reads: the implicit set-reads that became operations, as in ``History.set_reads``;
            ``None`` if the history had no implicit set-reads when the certificate was made.
        carried: the carried reads, as :meth:`CarriedRead.plain` writes them; ``None`` if the
            history was read without ``--unit request``.
        spec_name: the name of the specification.
        spec_sha256: the SHA-256 of all texts of the specification.
        spec_texts: the texts of the specification's files by file name, in the order they were
            read.
        tool: the program that made the certificate, with its version.
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
    carried: tuple[tuple[Any, ...], ...] | None = None
    tool: str = ""

    @property
    def verdict(self) -> Literal["valid", "invalid"]:
        """The verdict claimed by the certificate."""
        return "valid" if isinstance(self.proof, Witness | Relations) else "invalid"

    @classmethod
    def of(
        cls,
        history: History,
        spec: Spec,
        proof: Proof,
    ) -> Certificate:
        """Make the certificate for a proof, whose kind determines the verdict on ``history``."""
        carrying = history.carrying
        carried = None if carrying is None else tuple(tuple(r.plain()) for r in carrying.reads)
        return cls(
            proof=proof,
            carried=carried,
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
        """Return the history with the set-reads listed in the certificate turned into operations.

        Raises:
            CertificateRejected: if the history lacks one of these set-reads.
        """
        if self.set_reads == "all" or (self.set_reads is None and self._is_of_all(history)):
            return history.written_out()
        if self.set_reads in (None, (), history.set_reads):
            return history
        try:
            return history.with_set_reads(np.array(self.set_reads, np.int32))
        except (ValueError, OverflowError) as error:
            raise CertificateRejected(f"set_reads: {error}") from None

    def _is_of_all(self, history: History) -> bool:
        """Return whether the writing release turned all implicit set-reads into operations."""
        if not history.columns.implicit:
            return False
        if isinstance(self.proof, Witness):
            return self.proof.commits is None
        whole = history.written_out().columns.operations()
        return bool(whole - history.columns.operations() <= _ONCE_WRITTEN_OUT)

    def to_json(self) -> str:
        """Return the text of the certificate file: a single JSON object."""
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
        import json

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
                    **({} if self.carried is None else {"carried": self.carried}),
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
        """Write the certificate to a new file in ``directory`` and return the path of the file.

        The directory is created if necessary. The file name combines the names of the history and
        the specification. If a different certificate already has that name, a number is added.

        Raises:
            CertificateError: if the file cannot be written.
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
                    path.open("x").close()  # reserve the name with an empty file
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
        """Read a certificate from a file.

        Raises:
            CertificateError: if the file cannot be read, is not a certificate, or has a different
                format version.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CertificateError(f"{path}: cannot read the certificate ({error})") from error
        return cls.from_json(text, where=str(path))

    @classmethod
    def from_json(cls, text: str, *, where: str = "<certificate>") -> Certificate:
        """Parse the text of a certificate file, called ``where`` in error messages.

        Raises:
            CertificateError: if the text is not a certificate, or has a different format version.
        """
        import json

        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            hint = "isocheck verify takes the certificate first, and then the history"
            raise CertificateError(f"{where}: not JSON ({error}); hint: {hint}") from error
        if not isinstance(data, dict) or "format" not in data:
            raise CertificateError(
                f"{where}: not a certificate; pass a file saved by --certificate"
            )
        if data["format"] != FORMAT or isinstance(data["format"], bool):
            raise CertificateError(
                f"{where}: certificate format {data['format']!r:.20} (expected "
                f"{FORMAT}); another version of isolang wrote it"
            )
        try:
            return _parsed(data, where)
        except CertificateRejected as error:
            raise CertificateError(f"{where}: {error}") from error


def verify(certificate: Certificate, history: History, spec: Spec) -> Acceptance:
    """Check a certificate against a history and a specification, with both checkers.

    Args:
        certificate: the certificate to check.
        history: the history, which the caller has reread from its file.
        spec: the specification, which the caller has lowered again from the texts in the
            certificate.

    Returns:
        The parts of the proof accepted by each checker.

    Raises:
        CertificateError: if the certificate belongs to a different history or specification.
        CertificateRejected: if the proof does not hold.
        NotCertifiedError: if the checkers cannot decide the proof for this specification or
            history; or if the history lacks what a valid verdict needs.
    """
    from isolang.certify.carried import check_stated_reads
    from isolang.certify.verification import accept

    if certificate.history_sha256 != history.sha256:
        raise CertificateError(
            f"{history.name}: this certificate is about another history (got "
            f"sha256 {history.sha256 or 'none'}, expected "
            f"{certificate.history_sha256 or 'none'} of "
            f"{certificate.history_name})"
        )
    if certificate.spec_sha256 != spec.sha256:
        raise CertificateError(
            f"{spec.source}: this certificate is about another specification "
            f"(got sha256 {spec.sha256 or 'none'}, expected "
            f"{certificate.spec_sha256 or 'none'} of {certificate.spec_name})"
        )
    if certificate.verdict == "valid":
        _require_whole(history)
    check_stated_reads(history, () if certificate.carried is None else certificate.carried)
    return accept(certificate.about(history), spec, certificate.proof)


def _require_whole(history: History) -> None:
    """Check that a history has all that may have decided an answer, as a valid verdict needs it."""
    from isolang.certify.errors import NotCertifiedError

    if unseen := history.harmful_unseen():
        raise NotCertifiedError(f"not certified: {unseen_reason(unseen)}")
    if history.possible_facts and "possible_facts" not in history.options:
        raise NotCertifiedError(
            "not certified: the proof is about the history without the facts that only may have "
            "decided answers (:perhaps)"
        )


_PROOFS: Final = {
    "relations": ("valid", ("included", "chosen"), ()),
    "witness": ("valid", ("source", "order_start", "order_txn"), ("commits", "seen")),
    "exhaustion": ("invalid", ("transactions",), ()),
    "refutation": ("invalid", (), ()),
}
"""For each kind of proof, the verdict it proves, its required fields and its optional fields."""


def _parsed(data: dict[str, Any], where: str) -> Certificate:
    """Return the certificate described by a JSON object."""

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
                f"{', '.join((*must, *may))}); perhaps a later version of isolang "
                "wrote it"
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
        data["history"],
        "history",
        ("name", "sha256", "format", "options"),
        ("set_reads", "carried"),
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
        carried=of(history.get("carried"), "history.carried", _carried),
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


def _carried(raw: Any) -> tuple[tuple[Any, ...], ...] | None:
    if raw is None:
        return None
    reads = []
    for *numbers, without in raw:
        reader, source, op, scan = numbers_of(numbers)
        reads.append((reader, source, op, scan, tuple(numbers_of(without))))
    return tuple(reads)


def _written(path: Path, text: str) -> Path:
    try:
        write_atomically(path, text)
    except OSError:
        path.unlink()
        raise
    return path
