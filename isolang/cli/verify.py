"""``isocheck verify``: a saved certificate against its history, in plain Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from isolang.cli.report import EXIT_INPUT, EXIT_REJECTED, EXIT_UNKNOWN, EXIT_VALID
from isolang.errors import IsolangError

if TYPE_CHECKING:
    from isolang.certify.certificate import Certificate
    from isolang.language.meaning.core import Spec


def verify(certificate: str, history: str) -> int:
    """Check, print the result, and give the exit code."""
    from isolang.certify.certificate import Certificate
    from isolang.certify.certificate import verify as check
    from isolang.certify.errors import CertificateRejected, NotCertifiedError
    from isolang.history import load_history

    try:
        proof = Certificate.load(certificate)
        spec = spec_of(proof)
        options = proof.history_options
        read = load_history(
            history,
            format=proof.history_format,
            timestamps=bool(options.get("timestamps", False)),
            initial=options.get("initial"),
        )
        check(proof, read, spec)
    except CertificateRejected as error:
        print(f"REJECTED  {certificate}\n  {error}")
        return EXIT_REJECTED
    except NotCertifiedError as error:
        print(f"UNKNOWN  {certificate}\n  {error}")
        return EXIT_UNKNOWN
    except IsolangError as error:
        print(f"isocheck: {error}", file=sys.stderr)
        return EXIT_INPUT
    kind = "witness" if proof.verdict == "valid" else "refutation"
    print(
        f"ACCEPTED  {certificate}\n"
        f"  {history} is {proof.verdict} under {proof.spec_name}: the {kind} holds\n"
        f"  history sha256 {proof.history_sha256}\n"
        f"  spec sha256 {proof.spec_sha256}"
    )
    return EXIT_VALID


def spec_of(certificate: Certificate) -> Spec:
    """Lower the spec again from the certificate's own texts, whatever the library says today.

    Raises:
        CertificateError: there are none.
        SpecError: they cannot be read.
    """
    from isolang.certify.certificate import CertificateError
    from isolang.language.load import load_texts

    if not certificate.spec_texts:
        raise CertificateError(
            f"the certificate of {certificate.spec_name} holds no texts of a spec"
        )
    return load_texts(certificate.spec_texts)
