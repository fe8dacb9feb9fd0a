"""The stories of tests/stories, told again: collected by Shelf of tests/audit/retelling.py."""
