"""Device memory: the primitives that everything above them stands on."""
