"""`nbxrt doctor`: what this machine has, what nbxrt makes of it, and what to do.

The report is one mapping of plain values: report.py gathers it, text.py and `--json` show it, advice.py draws its
conclusions. What loads a vendor's library happens in a child process, which is probe.py; child.py starts it.
"""
