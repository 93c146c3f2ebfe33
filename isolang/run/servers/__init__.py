"""Servers of our own: started in a temporary folder, as an unprivileged user, and removed.

``server`` runs any of them, under a ``keeper`` that outlives us for a moment; the other modules
know what each is started with. ``proxy`` stands between clients and a server where faults do.
"""
