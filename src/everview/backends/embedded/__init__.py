"""The embedded backend: one process, NumPy state, Numba kernels; every operator maintained from deltas."""
