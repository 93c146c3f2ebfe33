"""``isocheck verify``: a saved certificate against its history, by both checkers."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import ValidationError, convert

from isolang.cli.parameters import OUTPUT, Mistake, Only
from isolang.cli.plot import Plot, require_plottable
from isolang.errors import SpecError
from isolang.options import Options, ReadOptions
from isolang.output.records import EXIT_REJECTED, EXIT_UNKNOWN, EXIT_VALID
from isolang.output.terminal import escaped, print_lines

if TYPE_CHECKING:
    from isolang.certify.certificate import Certificate
    from isolang.certify.verification import Acceptance
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec

_OF_A_PIPE: Final = 1 << 28  # bytes of a certificate that comes from no regular file


def verify(
    *,
    certificate: Annotated[str, typer.Argument(metavar="CERT", help="Of --certificate.")],
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="What it is about.")],
    options: Annotated[Options, Only("timeout", "memory")],
    page: Annotated[
        str,
        typer.Option(
            "--html", metavar="FILE", rich_help_panel=OUTPUT, show_default=False,
            help="Write the verdict that it proves as a page.",
        ),
    ] = "",
    plot: Plot = "",
    by_definition: Annotated[
        bool,
        typer.Option(
            "--by-definition",
            help="Insist: all of it must be accepted by the definition of the checks as written.",
        ),
    ] = False,
) -> int:  # fmt: skip
    """Check a certificate again, natively and by the definition of its checks."""
    from isolang.api import read
    from isolang.certify.certificate import Certificate
    from isolang.certify.certificate import verify as check
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.limits import default_memory, interrupted_after, memory_cap

    is_chain = os.path.isdir(certificate)
    if is_chain and (page or plot):
        raise Mistake("--html and --plot show the verdict of a certificate (got a folder's chain)")
    if plot:
        require_plottable(plot)
    shown = escaped(certificate)
    memory = default_memory() if options.memory is None else options.memory
    try:
        with memory_cap(memory, of_process=True), interrupted_after(options.timeout):
            if is_chain:
                return _verify_chain(certificate, history, by_definition=by_definition)
            text = _text(certificate)
            proof = Certificate.from_json(text, where=certificate)
            spec = spec_of(proof)
            about = proof.about(read(history, _reading(proof)))
            accepted = check(proof, about, spec)
            if by_definition and accepted.beyond_definition:
                raise NotCertifiedError(
                    f"not certified by definition: {accepted.beyond_definition}"
                )
            drawn = _drawn(proof, text, about, spec, accepted, name=history, page=page, plot=plot)
    except CertificateRejected as error:
        print_lines(f"REJECTED  {shown}", f"  {escaped(str(error))}")
        return EXIT_REJECTED
    except NotCertifiedError as error:
        print_lines(f"UNKNOWN  {shown}", f"  {escaped(str(error))}")
        return EXIT_UNKNOWN
    except TimeoutError:
        print_lines(f"UNKNOWN  {shown}", f"  timeout: not checked within {options.timeout:g} s")
        return EXIT_UNKNOWN
    except MemoryError:
        print_lines(f"UNKNOWN  {shown}", f"  memory: not checked within {memory:,.0f} MB")
        return EXIT_UNKNOWN
    kind = "witness" if proof.verdict == "valid" else "refutation"
    print_lines(
        f"ACCEPTED  {shown}",
        escaped(f"  {history} is {proof.verdict} under {proof.spec_name}: the {kind} holds"),
        escaped(f"  accepted by: {accepted}"),
        escaped(f"  history sha256 {proof.history_sha256}"),
        escaped(f"  history read as {_read_as(proof)}"),
        escaped(f"  spec sha256 {proof.spec_sha256}: {_whose(proof.spec_name, spec)}"),
        *(escaped(f"    {line}") for line in _checks(spec)),
        *(escaped(f"  {line}") for line in drawn),
    )
    return EXIT_VALID


def _verify_chain(folder: str, log: str, *, by_definition: bool) -> int:
    """The parts of a watched stream, each by itself, and how they follow one another."""
    from concurrent.futures import ThreadPoolExecutor

    from isolang.machine import processors
    from isolang.watch import Stream, check_chain

    stream = Stream([log], follow=False)
    try:
        with ThreadPoolExecutor(processors()) as executor:
            found = check_chain(
                Path(folder), stream, by_definition=by_definition, executor=executor
            )
    finally:
        stream.close()
    spec = found.spec
    print_lines(
        f"ACCEPTED  {escaped(folder)}",
        escaped(
            f"  {log} is valid under {spec.name}: {found.transactions:,} transactions, each part "
            "holds"
        ),
        *(escaped(f"  {name}: {value}") for name, value in found.read_as),
        escaped(f"  spec sha256 {spec.sha256}: {_whose(spec.name, spec, 'chain')}"),
        *(escaped(f"    {line}") for line in _checks(spec)),
    )
    return EXIT_VALID


def _drawn(
    proof: Certificate,
    text: str,
    about: History,
    spec: Spec,
    accepted: Acceptance,
    *,
    name: str,
    page: str,
    plot: str,
) -> list[str]:
    """Write the page and the figure that were asked for; a line for each."""
    if not (page or plot):
        return []
    from isolang.pipeline.verified import verdict_of
    from isolang.report import page as make
    from isolang.report import save_page
    from isolang.report.figure import figure
    from isolang.report.picture import save_picture

    verdict = verdict_of(proof, about, spec, accepted)
    lines = []
    if page:
        digest = hashlib.sha256(text.encode()).hexdigest()
        lines.append(f"page {save_page(make(verdict, name=name, certificate=digest), Path(page))}")
    if plot:
        lines.append(f"figure {save_picture(figure(verdict), plot)}")
    return lines


def _reading(proof: Certificate) -> ReadOptions:
    """How the certificate has the history read.

    Raises:
        CertificateError: in a way that this version does not know.
    """
    from isolang.certify.certificate import CertificateError

    said = {"format": proof.history_format, **proof.history_options}
    try:
        return convert({k: v for k, v in said.items() if v is not None}, ReadOptions)
    except ValidationError as error:
        raise CertificateError(f"the history's options in the certificate: {error}") from None


def _read_as(proof: Certificate) -> str:
    """How the certificate has the history read: that may change what it says."""
    from isolang.history.history import read_with

    asked = read_with(proof.history_options).removeprefix("read")
    return f"{proof.history_format}{asked}"


def _text(path: str) -> str:
    """The certificate's text; of what is no regular file, only as much as one may have.

    Raises:
        CertificateError: it cannot be read, or has no end.
    """
    from isolang.certify.certificate import CertificateError

    try:
        with open(path, "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read() if regular else file.read(_OF_A_PIPE + 1)
        if not regular and len(data) > _OF_A_PIPE:
            raise CertificateError(f"{path}: no certificate; it is no regular file, and has no end")
        return data.decode()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise CertificateError(f"{path}: cannot read the certificate ({error})") from error


def _whose(known_as: str, spec: Spec, proof: str = "certificate") -> str:
    """Whether the specification is the library's of this name: its texts say, not its name."""
    from isolang.language.load import load_spec

    main = next(iter(spec.texts))
    for name in (known_as, PurePath(main.rpartition(":")[2]).stem):
        try:
            library = load_spec(name)
        except SpecError:
            continue
        if not library.source.startswith("library:"):
            continue
        if library.sha256 == spec.sha256:
            return f"the library's {name}"
        return f"the {proof}'s own text, which is not the library's {name}; its checks:"
    return f"the {proof}'s own text; its checks:"


def _checks(spec: Spec) -> list[str]:
    from isolang.language.meaning.show import show_check

    return [show_check(check) for check in spec.checks]


def spec_of(certificate: Certificate) -> Spec:
    """Lower the spec again from the certificate's own texts, whatever the library says today.

    Raises:
        CertificateError: there are none, or the level that they say has another name.
        SpecError: they cannot be read.
    """
    from isolang.certify.certificate import CertificateError
    from isolang.language.load import load_texts

    if not certificate.spec_texts:
        raise CertificateError(
            f"the certificate of {certificate.spec_name} holds no texts of a spec"
        )
    spec = load_texts(certificate.spec_texts)
    if spec.name != certificate.spec_name:
        raise CertificateError(
            f"spec.name is not the name of the level in spec.texts (got "
            f"{certificate.spec_name!r:.60}, expected {spec.name!r:.60})"
        )
    return spec
