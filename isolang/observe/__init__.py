"""Observes what unchanged applications do on PostgreSQL.

``unseen`` names and counts what an observer could not record.
"""
