"""Provides drivers, which are modules for the client packages of different databases.

For a package with DB-API connections, the driver knows how to commit and roll back, and what errors
mean. For other packages, the driver sends the requests. Adapters use the drivers, and the recorder
uses them for the connections of users.
"""
