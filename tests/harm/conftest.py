"""What tests of harm share: an embedded PostgreSQL."""

from testing.conftest import embedded, isolation, server_on_trial  # noqa: F401 - fixtures
