"""Calls a function of a Python application, as a command of a case.

``python -m isolang.court.function FILE`` reads the call, such as ``pay(1, 30)``, from its standard
input. It prints the result as JSON. After an error, which is printed with its class, the exit code
is 1.
"""

from __future__ import annotations

import sys

import msgspec

from isolang.errors import IsolangError
from isolang.foresee.calls import AppCall
from isolang.foresee.played_run import Application, import_functions
from isolang.harm.outcome import answer_of, answer_of_error


def main(source: str, line: str) -> int:
    """Make a call, print its answer, and return the exit code."""
    try:
        functions, _ = import_functions(source)
    except IsolangError as error:
        sys.exit(str(error))
    application = Application(name=source, functions=functions, setup=lambda: None)
    call = application.call_of([line])
    if not isinstance(call, AppCall):
        sys.exit(call)
    try:
        answer = answer_of(call.again())
    except Exception as error:  # an error of the application
        answer = answer_of_error(error)
        print(f"{answer.error}: {answer.value}")
        return 1
    is_text = isinstance(answer.value, str)
    print(answer.value if is_text else msgspec.json.encode(answer.value).decode())
    return 1 if answer.error else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else sys.stdin.readline()))
