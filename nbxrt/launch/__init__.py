"""Kernels: packing arguments, launching, and standing in for Triton's own driver and launcher."""
