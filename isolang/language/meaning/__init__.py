"""The meaning of a tree: names, sorts, and core expressions, in which every definition is expanded.

``core`` has the expressions that the rest of the package works on, ``sorts`` rejects expressions
without meaning, ``lower`` expands the others, ``show`` writes them as text again. ``mentions``
returns the relations that a specification mentions, ``polarity`` warns if it requires less than its
author probably meant.
"""
