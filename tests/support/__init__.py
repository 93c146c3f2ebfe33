"""Provides helpers that several tests share: command-line runs, histories, and reference models."""
