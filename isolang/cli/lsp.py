"""Implements ``isocheck lsp``, a language server for editors over standard input and output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, BinaryIO, Final
from urllib.parse import unquote, urlsplit

from isolang.cli.parameters import Mistake
from isolang.errors import OptionError
from isolang.output.records import EXIT_VALID
from isolang.release import version

LONGEST: Final = 64 << 20  # bytes; a specification has only a few thousand


def lsp() -> int:
    """Run the language server: errors as you type, hover, completion, definitions, formatting."""
    # pygls closes its output stream at the end of a session. It gets a duplicate, because standard
    # output must stay open.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    server().start_io(_BoundedInput(sys.stdin.buffer), answers)
    return EXIT_VALID


class _BoundedInput:
    """An input stream that rejects messages above the size limit."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        """Return the next line of a message header."""
        return self._stream.readline(LONGEST)

    def read(self, size: int) -> bytes:
        """Return the body of a message."""
        if size > LONGEST:
            raise OptionError(
                f"<stdin>: the message is too long (got Content-Length: {size}, expected at most "
                f"{LONGEST})"
            )
        return self._stream.read(size)


def server() -> Any:
    """Create the language server, and register handlers for all supported requests.

    Raises:
        Mistake: if pygls is not installed.
    """
    try:
        from lsprotocol import types as lsp_types
        from pygls.lsp.server import LanguageServer
    except ImportError:
        raise Mistake("pygls is not installed", "pip install 'isolang[lsp]'") from None
    from isolang.language import editing  # lazy, because every command's help imports this file

    found = LanguageServer("isocheck", version())

    def buffer(uri: str) -> tuple[str, Path]:
        return found.workspace.get_text_document(uri).source, path_of(uri)

    def place(at: Any) -> tuple[int, int]:
        return at.position.line + 1, at.position.character + 1

    def publish(uri: str) -> None:
        severity = {
            "error": lsp_types.DiagnosticSeverity.Error,
            "warning": lsp_types.DiagnosticSeverity.Warning,
        }
        text, path = buffer(uri)
        lines = text.splitlines()
        diagnostics = []
        for note in editing.notes(text, path):
            word = editing.word_at(text, note.line, note.column) if note.line <= len(lines) else ""
            start = lsp_types.Position(note.line - 1, note.column - 1)
            end = lsp_types.Position(note.line - 1, note.column - 1 + max(1, len(word)))
            diagnostics.append(
                lsp_types.Diagnostic(
                    range=lsp_types.Range(start, end),
                    message=note.message,
                    severity=severity[note.severity],
                    source="isocheck",
                )
            )
        found.text_document_publish_diagnostics(
            lsp_types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics)
        )

    @found.feature(lsp_types.TEXT_DOCUMENT_DID_OPEN)
    def opened(event: lsp_types.DidOpenTextDocumentParams) -> None:
        publish(event.text_document.uri)

    @found.feature(lsp_types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(event: lsp_types.DidChangeTextDocumentParams) -> None:
        publish(event.text_document.uri)

    @found.feature(lsp_types.TEXT_DOCUMENT_HOVER)
    def hover(at: lsp_types.HoverParams) -> lsp_types.Hover | None:
        text = editing.hover(*buffer(at.text_document.uri), *place(at))
        content = lsp_types.MarkupContent(lsp_types.MarkupKind.Markdown, text)
        return lsp_types.Hover(contents=content) if text else None

    @found.feature(lsp_types.TEXT_DOCUMENT_COMPLETION)
    def complete(at: lsp_types.CompletionParams) -> list[lsp_types.CompletionItem]:
        words = editing.completions(*buffer(at.text_document.uri))
        return [lsp_types.CompletionItem(label=w, detail=about) for w, about in words.items()]

    @found.feature(lsp_types.TEXT_DOCUMENT_DEFINITION)
    def define(at: lsp_types.DefinitionParams) -> lsp_types.Location | None:
        where = editing.definition(*buffer(at.text_document.uri), *place(at))
        if where is None:
            return None
        start = lsp_types.Position(where[1] - 1, where[2] - 1)
        return lsp_types.Location(uri=uri_of(where[0]), range=lsp_types.Range(start, start))

    @found.feature(lsp_types.TEXT_DOCUMENT_FORMATTING)
    def layout(request: lsp_types.DocumentFormattingParams) -> list[lsp_types.TextEdit]:
        text, path = buffer(request.text_document.uri)
        better = editing.format_buffer(text, path)
        if better is None or better == text:
            return []
        whole = lsp_types.Range(
            lsp_types.Position(0, 0), lsp_types.Position(text.count("\n") + 1, 0)
        )
        return [lsp_types.TextEdit(range=whole, new_text=better)]

    return found


def path_of(uri: str) -> Path:
    """Return the file path named by a URI, or a placeholder for an unsaved file."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else Path("unsaved.iso")


def uri_of(name: str) -> str:
    """Return the URI of a specification file, possibly one in the library."""
    from isolang.language.library import file_of

    return (file_of(name) if name.startswith("library:") else Path(name).absolute()).as_uri()
