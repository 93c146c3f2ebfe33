"""Drivers: one file for each client package of a database.

For packages with DB-API connections, they know how to commit and roll back, and what errors mean;
for others, the requests. Adapters use them, and the recorder does for connections of users.
"""
