"""What tests of harm share: an embedded PostgreSQL."""

from testing.conftest import embedded, isolation  # noqa: F401 - fixtures
