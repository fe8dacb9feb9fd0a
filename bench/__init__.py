"""Figures, measured in pairs within one run: `make bench`."""
