"""Tools for tests of databases and applications: assertions, the pytest plugin, interleavings.

``assertion`` says no to a history that a level does not allow; ``isolation`` is what the plugin's
fixture of that name gives a test; ``pytest_plugin`` ties it to pytest.
"""
