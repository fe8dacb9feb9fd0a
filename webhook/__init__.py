"""fieldwarden: the field-ownership policy layer for Kubernetes."""

__version__ = "0.1.0"
