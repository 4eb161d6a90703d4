"""Compiled from backends/*.yaml.

Written by `python -m nbxrt.catalogue.compiling`; edit backends/*.yaml and run it again.
"""

# fmt: off
INDEX = {'cuda': (10, 'gpu', ('linux', 'windows'), (('nvidia',), 'cuda')),
 'hip': (20, 'gpu', ('linux', 'windows'), (('amd',), 'hip')),
 'metal': (30, 'gpu', ('macos',), (('metal',), 'metal')),
 'level_zero': (100, 'gpu', ('linux', 'windows'), (('intel',), 'xpu')),
 'opencl': (200, 'gpu', ('linux', 'windows'), (('opencl',), 'opencl')),
 'host': (1000, 'cpu', ('linux', 'windows', 'macos'), None)}
