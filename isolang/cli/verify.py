"""Implements ``isocheck verify``, which checks a saved certificate with all checkers."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import Struct, ValidationError, convert
from msgspec.structs import replace

from isolang.cli.parameters import LEVELS, Mistake, SelectedOptions, WorkersURL, accept_only
from isolang.cli.plot import require_plottable
from isolang.errors import SpecError
from isolang.options import Options, OutputOptions, ReadOptions
from isolang.output.records import EXIT_REJECTED, EXIT_UNKNOWN, EXIT_VALID
from isolang.output.terminal import escaped, print_lines

if TYPE_CHECKING:
    from isolang.certify.certificate import Certificate
    from isolang.certify.verification import Acceptance
    from isolang.history.history import History
    from isolang.language.meaning.core import Spec

_PIPE_LIMIT: Final = 1 << 28  # the maximum size in bytes of a certificate from a pipe


def verify(
    *,
    certificate: Annotated[
        str,
        typer.Argument(
            metavar="CERT",
            help="A certificate saved by --certificate, or a folder saved by watch --state.",
        ),
    ],
    history: Annotated[str, typer.Argument(metavar="HISTORY", help="The history that the "
    "certificate is about.")],
    options: Annotated[Options, SelectedOptions("timeout", "memory")],
    output: Annotated[OutputOptions, SelectedOptions("html", "plot")],
    workers: WorkersURL = "",
    level: Annotated[
        str,
        typer.Option(
            "--spec", "-s", metavar="SPEC", show_default=False, autocompletion=LEVELS,
            help="Reject a certificate for another level or .iso file, whatever its name.",
        ),
    ] = "",
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect", help="Reject a certificate for the other verdict.",
            **accept_only("valid", "invalid"),
        ),
    ] = None,
    by_definition: Annotated[
        bool,
        typer.Option(
            "--by-definition",
            help="Require that the checker by definition accepts the whole proof.",
        ),
    ] = False,
    by_kernel: Annotated[
        bool,
        typer.Option(
            "--kernel",
            help="Require that the checker proved in Coq accepts the proof, too.",
        ),
    ] = False,
) -> int:  # fmt: skip
    """Check a certificate with independent checkers."""
    from isolang.certify.certificate import Certificate
    from isolang.certify.certificate import verify as check
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.certify.kernel import MISSING, find_kernel
    from isolang.history import read_history
    from isolang.language.load import load_spec
    from isolang.limits import default_memory, interrupt_after, memory_cap

    is_chain = os.path.isdir(certificate)
    if is_chain and (output.html or output.plot):
        raise Mistake(
            "--html and --plot show the verdict of a certificate (got a chain, which is a folder)"
        )
    if workers and not is_chain:
        raise Mistake("--workers distributes the parts of a chain (got a single certificate)")
    if output.plot:
        require_plottable(output.plot)
    shown = escaped(certificate)
    memory = default_memory() if options.memory is None else options.memory
    if by_kernel and find_kernel() is None:
        raise Mistake(f"--kernel: {MISSING}")
    expected = _Expected(load_spec(level) if level else None, expect)
    try:
        with memory_cap(memory, of_process=True), interrupt_after(options.timeout):
            if is_chain:
                return _verify_chain(
                    certificate,
                    history,
                    expected,
                    by_definition=by_definition,
                    by_kernel=by_kernel,
                    workers=workers,
                )
            text = _text(certificate)
            proof = Certificate.from_json(text, where=certificate)
            spec = spec_of(proof)
            expected.require(spec, proof.verdict)
            about = proof.about(read_history(history, reading_options(proof)))
            accepted = check(proof, about, spec)
            if by_definition and accepted.beyond_definition:
                raise NotCertifiedError(
                    f"not certified by definition: {accepted.beyond_definition}"
                )
            accepted = _check_by_kernel(accepted, about, spec, proof, insists=by_kernel)
            drawn = _write_pictures(proof, text, about, spec, accepted, name=history, output=output)
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
        *_kernel_line(ran=accepted.by_kernel),
        escaped(f"  history sha256 {proof.history_sha256}"),
        escaped(f"  history read as {_reading_phrase(proof)}"),
        escaped(f"  spec sha256 {proof.spec_sha256}: {_provenance(proof.spec_name, spec)}"),
        *(escaped(f"    {line}") for line in _checks(spec)),
        *(escaped(f"  {line}") for line in drawn),
    )
    return EXIT_VALID


class _Expected(Struct):
    """The specification and the verdict that a certificate must have.

    Attributes:
        spec: the specification; ``None`` for any.
        verdict: the verdict; ``None`` for any.
    """

    spec: Spec | None
    verdict: str | None

    def require(self, spec: Spec, verdict: str) -> None:
        """Require that a certificate has the expected specification and verdict."""
        from isolang.certify.errors import CertificateRejected

        if self.spec is not None and self.spec.sha256 != spec.sha256:
            raise CertificateRejected(
                f"--spec: the certificate is for another text (got {spec.name}, sha256 "
                f"{spec.sha256}, expected {self.spec.name}, sha256 {self.spec.sha256}); its "
                f"checks: {'; '.join(_checks(spec))}"
            )
        if self.verdict not in (None, verdict):
            raise CertificateRejected(
                f"--expect: the certificate is for another verdict (got {verdict}, expected "
                f"{self.verdict})"
            )


def _kernel_line(*, ran: bool) -> list[str]:
    """Return the line that names the kernel's program, as a list; empty if it did not accept."""
    from isolang.certify.kernel import describe_kernel, find_kernel

    program = find_kernel() if ran else None
    return [] if program is None else [escaped(f"  kernel {describe_kernel(program)}")]


def _check_by_kernel(
    accepted: Acceptance, history: History, spec: Spec, proof: Certificate, *, insists: bool
) -> Acceptance:
    """Have the kernel check a proof too if its program is installed, and add its result."""
    from isolang.certify.errors import NotCertifiedError
    from isolang.certify.kernel import find_kernel
    from isolang.certify.verification import accept_by_kernel

    if find_kernel() is None:
        return accepted
    try:
        accepted = accept_by_kernel(accepted, history, spec, proof.proof)
    except (TimeoutError, MemoryError) as error:
        if insists:
            raise
        limit = "time" if isinstance(error, TimeoutError) else "memory"
        return replace(accepted, beyond_kernel=f"the {limit} limit was reached")
    if insists and not accepted.by_kernel:
        raise NotCertifiedError(f"not certified by the kernel: {accepted.beyond_kernel}")
    return accepted


def _verify_chain(
    folder: str,
    log: str,
    expected: _Expected,
    *,
    by_definition: bool,
    by_kernel: bool,
    workers: str,
) -> int:
    """Check a watch's chain, print the result, and return the exit code.

    Each part must satisfy the level by itself, and begin with the values left by earlier parts.
    """
    from concurrent.futures import ThreadPoolExecutor

    from isolang.cli.progress import Bar
    from isolang.jobs.workers import Workers
    from isolang.machine import processors
    from isolang.watch import Stream, check_chain

    stream = Stream([log], follow=False)
    try:
        with (
            Workers(workers) if workers else ThreadPoolExecutor(processors()) as executor,
            Bar() as bar,
        ):
            found = check_chain(
                Path(folder),
                stream,
                by_definition=by_definition,
                by_kernel="insists" if by_kernel else "tries",
                executor=executor,
                progress=bar.reached,
            )
    finally:
        stream.close()
    spec = found.spec
    expected.require(spec, "valid")
    print_lines(
        f"ACCEPTED  {escaped(folder)}",
        escaped(
            f"  {log} is valid under {spec.name}: {found.transactions:,} transactions; every "
            "part holds"
        ),
        *([escaped(f"  {found.by_kernel}")] if found.by_kernel else []),
        *_kernel_line(ran=bool(found.by_kernel) and not workers),
        *(escaped(f"  {name}: {value}") for name, value in found.read_as),
        escaped(f"  spec sha256 {spec.sha256}: {_provenance(spec.name, spec, 'chain')}"),
        *(escaped(f"    {line}") for line in _checks(spec)),
    )
    return EXIT_VALID


def _write_pictures(
    proof: Certificate,
    text: str,
    about: History,
    spec: Spec,
    accepted: Acceptance,
    *,
    name: str,
    output: OutputOptions,
) -> list[str]:
    """Write the requested page and figure, and return a line for each file written."""
    if not (output.html or output.plot):
        return []
    from isolang.pipeline.verified import verdict_of
    from isolang.report import page as make
    from isolang.report import save_page
    from isolang.report.figure import figure
    from isolang.report.picture import save_picture

    verdict = verdict_of(proof, about, spec, accepted)
    lines = []
    if output.html:
        digest = hashlib.sha256(text.encode()).hexdigest()
        page = make(verdict, name=name, certificate=digest)
        lines.append(f"page {save_page(page, Path(output.html))}")
    if output.plot:
        lines.append(f"figure {save_picture(figure(verdict), output.plot)}")
    return lines


def reading_options(proof: Certificate) -> ReadOptions:
    """Return the options in a certificate for reading the history.

    Raises:
        CertificateError: if one of the options is unknown to this version of isolang.
    """
    from isolang.certify.certificate import CertificateError

    options = {"format": proof.history_format, **proof.history_options}
    try:
        return convert({k: v for k, v in options.items() if v is not None}, ReadOptions)
    except ValidationError as error:
        raise CertificateError(f"the history's options in the certificate: {error}") from None


def _reading_phrase(proof: Certificate) -> str:
    """Return a phrase about how the history is read, because that may change its meaning."""
    from isolang.history.history import read_with

    options = read_with(proof.history_options).removeprefix("read")
    return f"{proof.history_format}{options}"


def _text(path: str) -> str:
    """Read a certificate from a file, or from a pipe up to a limit."""
    from isolang.certify.certificate import CertificateError

    try:
        with open(path, "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read() if regular else file.read(_PIPE_LIMIT + 1)
        if not regular and len(data) > _PIPE_LIMIT:
            raise CertificateError(
                f"{path}: not a certificate (got a device or pipe with more than {_PIPE_LIMIT:,} "
                "bytes, expected a file)"
            )
        return data.decode()
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise CertificateError(f"{path}: cannot read the certificate ({error})") from error


def _provenance(known_as: str, spec: Spec, proof: str = "certificate") -> str:
    """Return a phrase about whether a proof's specification is the library's.

    The texts are compared, because a proof may contain a modified text under the same name.
    """
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
        return f"the text in the {proof}, which differs from the library's {name}; its checks:"
    return f"the text in the {proof}; its checks:"


def _checks(spec: Spec) -> list[str]:
    from isolang.language.meaning.show import show_check

    return [show_check(check) for check in spec.checks]


def spec_of(certificate: Certificate) -> Spec:
    """Return the specification defined by the texts in a certificate.

    The library is not used, because its texts may have changed since the certificate was written.

    Raises:
        CertificateError: if the certificate contains no texts, or if they define a level under
            another name.
        SpecError: if the texts cannot be read.
    """
    from isolang.certify.certificate import CertificateError
    from isolang.language.load import load_texts

    if not certificate.spec_texts:
        raise CertificateError(
            f"the certificate for {certificate.spec_name} does not contain the texts of its "
            "specification"
        )
    spec = load_texts(certificate.spec_texts)
    if spec.name != certificate.spec_name:
        raise CertificateError(
            "spec.name differs from the level's name in spec.texts (got "
            f"{certificate.spec_name!r:.60}, expected {spec.name!r:.60})"
        )
    return spec
