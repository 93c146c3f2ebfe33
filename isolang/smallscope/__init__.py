"""Specifications on all histories of a few transactions, for ``isocheck spec lint``.

What is wrong with a specification mostly shows there (D. Jackson's small scope hypothesis). No
verdict about a user's history comes from here.
"""
