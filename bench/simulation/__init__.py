"""Simulated leaves for the real driver, in virtual time."""
