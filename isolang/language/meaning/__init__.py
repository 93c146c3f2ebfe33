"""What a tree means: names, sorts, and core expressions, in which every definition is expanded.

``core`` has the expressions that the rest of the package works on, ``sorts`` refuses what has no
meaning, ``lower`` expands the rest, ``show`` writes it as text again. ``mentions`` says what a
specification mentions, ``polarity`` warns where it says less than meant.
"""
