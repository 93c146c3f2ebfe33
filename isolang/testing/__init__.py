"""Tools for tests of databases and applications: assertions, the pytest plugin, interleavings.

``assertion`` raises an error if a history does not satisfy a level. ``isolation`` has the object
that the plugin's fixture of that name passes to a test, and ``pytest_plugin`` registers the
fixture.
"""
