"""From a description to callables: library search, C types, generated functions, status and errors."""
