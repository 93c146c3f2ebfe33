"""A brute-force reading of the language reference, against which the tool is tested.

Nothing here is shared with the package except the lowered expressions of
``isolang.language.meaning.core`` and, at the very edge (``pipeline``), the public API that is under
test.
"""
