"""The objects people hold: devices, streams, events, graphs, memory and arrays, over the raw operations of a runtime.

An object keeps the runtime that it was made with. Its names are at the top of `nbxrt`, loaded at their first use.
"""
