"""What tests of the court share: an embedded PostgreSQL."""

from testing.conftest import embedded  # noqa: F401 - a fixture
