"""The encoding of any specification as it is written, by must/may bounds (Kodkod's way).

``formula`` has the input of solvers, which ``encoding`` makes from the elements and the given
relations (``interpretation``, ``bounded``, ``reads``), the relations to be chosen (``chosen``), the
values of expressions (``evaluate``, over ``relation`` and ``circuit``), and the checks
(``checks``). ``cost`` estimates in advance whether an encoding would be too large.
"""
