"""Starts database servers in temporary folders, as an unprivileged user, and removes them.

``server`` runs any server under a ``keeper``, which removes the server even if this process is
killed. ``proxy`` connects clients to a server so that faults can affect the connections,
``network`` does this between the nodes of a ``cluster``, and the other modules each start one kind
of server.
"""
