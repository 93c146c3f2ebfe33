"""What the oracle cannot answer."""


class TooLargeError(Exception):
    """The history has more assignments than the caller allows."""
