"""One reader per format; the hot ones are native and only described here."""
