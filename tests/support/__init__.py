"""What several tests share: running the command line, making histories, slow models."""
