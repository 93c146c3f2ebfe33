"""Back ends, one file each: a problem in, a model or a refutation out."""
