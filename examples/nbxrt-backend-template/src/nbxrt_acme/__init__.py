"""A backend of nbxrt, as data: nothing of it is imported."""
