"""The stories of tests/rewriting, told again: collected by Shelf of tests/audit/retelling.py."""
