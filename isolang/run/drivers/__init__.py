"""Provides drivers: one file for each client package of a database.

For a package with DB-API connections, a driver knows how to commit and roll back, and what errors
mean. For other packages, it sends the requests. Adapters use the drivers, and so does the recorder
for connections of users.
"""
