"""Random histories on a real API server that rewrites: what is stored is what was decided, and nothing else."""
