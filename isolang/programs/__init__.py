"""Finds out which outcomes of small transactional programs each level allows.

``syntax`` parses a program, ``explore`` lists all its outcomes, ``outcomes`` checks each outcome at
several levels, and ``page`` formats the results as a table for web pages and papers. Herd does the
same for memory models (J. Alglave, L. Maranget, M. Tautschnig, *Herding Cats*, TOPLAS 2014). Here,
a program has transactions instead of instructions, and a level is any specification in ``.iso``.
"""
