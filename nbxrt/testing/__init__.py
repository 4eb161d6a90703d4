"""Tests for the backend files of other projects, as a plugin of pytest.

    pytest --nbxrt-backends backends/
    python -m nbxrt.testing backends/

turn each file into three tests: its schema, its parity, its meaning. plugin.py makes the tests, and checking.py says
what each of them found; pytest itself is imported only there.
"""
