"""The encoding of any specification as it is written, by must/may bounds (Kodkod's way).

``formula`` is what solvers get; ``encoding`` makes it: the elements and given relations
(``interpretation``, ``bounded``, ``reads``), the relations to be chosen (``chosen``), the value of
an expression (``evaluate``, over ``relation`` and ``circuit``), and the checks (``checks``).
``cost`` says before whether it would be too much.
"""
