"""Audit changes nothing, and records what Enforce would have done."""
