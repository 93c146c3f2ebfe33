"""The meaning of a tree: names, sorts, and core expressions, in which every definition is expanded.

``core`` defines the expressions that the rest of the package works on. ``sorts`` rejects
expressions without meaning, ``lower`` expands all other expressions, and ``show`` writes them as
text again. ``mentions`` returns the relations that a specification mentions. ``polarity`` warns if
a specification requires less than its author probably meant.
"""
