"""`nbxrt demo`: the best backend of this machine moves a file to its device and back, and says how.

choice.py says which backend, payload.py what is moved, transfer.py moves it; command.py tells people.
"""
