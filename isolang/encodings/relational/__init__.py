"""Encodes any specification as written, with lower and upper bounds for its relations (Kodkod).

``encoding`` combines the parts: the elements and the given relations (``interpretation``,
``bounded``, ``reads``), the relations chosen by a solver (``chosen``), the values of expressions
(``evaluate``, over ``relation`` and ``circuit``), and the checks (``checks``). ``formula`` holds
the result, which is passed to solvers. ``cost`` estimates in advance whether an encoding would be
too large.
"""
