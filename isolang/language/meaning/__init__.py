"""Resolves names, checks sorts, and lowers a syntax tree to core expressions.

``core`` defines the expressions that the rest of the package works on. ``sorts`` rejects
expressions without meaning, ``lower`` expands the definitions in all other expressions, and
``show`` writes the results as text again. ``mentions`` returns the relations that a specification
mentions. ``polarity`` warns if a specification requires less than its author probably meant.
"""
