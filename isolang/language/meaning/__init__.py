"""Resolves names, checks sorts, and lowers a syntax tree to core expressions.

``core`` defines the expressions used by the rest of the package. ``sorts`` rejects meaningless
expressions, ``lower`` expands the definitions in all other expressions, and ``show`` turns the
results back into text. ``mentions`` returns the relations mentioned by a specification.
``polarity`` warns if a specification requires less than its author probably intended.
"""
