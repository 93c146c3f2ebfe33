"""An embedded PostgreSQL, and where tests record."""

from testing.conftest import embedded, isolation  # noqa: F401 - fixtures
