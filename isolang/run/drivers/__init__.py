"""Provides drivers: one module for each database's client package.

For a package with DB-API connections, the driver commits, rolls back, and classifies errors. For
other packages, the driver sends the requests. Adapters use the drivers, and the recorder uses them
for applications' connections.
"""
