"""Shared account books."""
