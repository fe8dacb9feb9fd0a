"""Random histories on a real API server: who did what is known, and every Change must say so."""
