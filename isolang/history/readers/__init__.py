"""One reader for each format: the native core reads, and here its remarks become sentences."""
