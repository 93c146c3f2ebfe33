"""One reader for each format: the native core reads, and these modules describe what it found."""
