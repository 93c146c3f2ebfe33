"""Specifications on all histories of a few transactions, for ``isocheck spec lint``.

Most errors of a specification show there (D. Jackson's small scope hypothesis). No
verdict about a user's history comes from here.
"""
