"""Small programs of transactions, and the outcomes of them that each level allows.

``syntax`` parses a text, ``explore`` lists all outcomes, ``outcomes`` checks each outcome by
several levels, and ``page`` writes the table for pages and papers. Herd does this for memory models
(J. Alglave, L. Maranget, M. Tautschnig, *Herding Cats*, TOPLAS 2014); a program here has
transactions instead of instructions, and a level is any specification in ``.iso``.
"""
