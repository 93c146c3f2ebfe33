"""What is said of a verdict: the report as a record, as text for people, and as EDN."""
