"""Starts servers in a temporary folder, as an unprivileged user, and removes them.

``server`` runs any server, under a ``keeper`` that outlives this process for a moment. The other
modules know how to start each kind of server. ``proxy`` connects clients to a server that faults
affect.
"""
