"""Encodes any specification as written, with lower and upper bounds of its relations (Kodkod).

``encoding`` combines the parts: the elements and the given relations (``interpretation``,
``bounded``, ``reads``), the relations that a solver chooses (``chosen``), the values of expressions
(``evaluate``, over ``relation`` and ``circuit``), and the checks (``checks``). ``formula`` has the
result, which is the input of solvers. ``cost`` estimates in advance whether an encoding would be
too large.
"""
