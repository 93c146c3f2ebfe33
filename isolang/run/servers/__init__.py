"""Servers that isocheck starts in a temporary folder, as an unprivileged user, and removes.

``server`` runs any of them, under a ``keeper`` that outlives this process for a moment; the other
modules know how to start each. ``proxy`` connects clients to a server that faults affect.
"""
