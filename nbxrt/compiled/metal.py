"""Compiled from backends/metal.yaml.

Written by `python -m nbxrt.catalogue.compiling`; edit backends/metal.yaml and run it again.
"""

# fmt: off
DESCRIPTION = {'name': 'metal',
 'title': 'Apple Metal',
 'contract': 1,
 'abi': 'objc',
 'kind': 'gpu',
 'handles': 'object',
 'platforms': ('macos',),
 'priority': 30,
 'triton': (('metal',), 'metal'),
 'interop': {'dlpack': {'device': 8}, 'streams': None, 'array_interface': '', 'stream_protocol': ''},
 'visibility': (),
 'device_required': True,
 'presence': {'macos': None},
 'libraries': {'runtime': {'names': ((None, {'macos': '/System/Library/Frameworks/Metal.framework/Metal'}),),
                           'search': (('system', (), {}),),
                           'identity': None,
                           'telling': (),
                           'beside': '',
                           'hint': 'Metal is part of macOS',
                           'mode': 'local',
                           'version': None,
                           'digits': (),
                           'driver_version': None,
                           'driver_digits': (),
                           'uuid_prefixes': (),
                           'init': None,
                           'init_tolerates': (),
                           'enter': None,
                           'close': None,
                           'status': {'success': 0,
                                      'negated': False,
                                      'clear': None,
                                      'name': None,
                                      'text': None,
                                      'kinds': {'unknown': (1,),
                                                'not_permitted': (4, 7),
                                                'out_of_memory': (8,),
                                                'invalid_value': (9,),
                                                'device_unavailable': (11,)},
                                      'explains': ()},
                           'line': 23},
               'driver': {'names': ((None, {'macos': '/usr/lib/libobjc.A.dylib'}),),
                          'search': (('system', (), {}),),
                          'identity': None,
                          'telling': (),
                          'beside': '',
                          'hint': 'the Objective-C runtime is part of macOS',
                          'mode': 'local',
                          'version': None,
                          'digits': (),
                          'driver_version': None,
                          'driver_digits': (),
                          'uuid_prefixes': (),
                          'init': None,
                          'init_tolerates': (),
                          'enter': None,
                          'close': None,
                          'status': {'success': 0,
                                     'negated': False,
                                     'clear': None,
                                     'name': None,
                                     'text': None,
                                     'kinds': {},
                                     'explains': ()},
                          'line': 38}},
 'structs': {},
 'messages': {},
 'enums': {},
 'needs': {},
 'operations': {},
 'absent': {'device_count': ('needs the steps language: a device is an Objective-C object that is listed, asked and '
                             'kept by messages',
                             50),
            'set_device': ('needs the steps language: a device is an Objective-C object that is listed, asked and '
                           'kept by messages',
                           50),
            'get_device': ('needs the steps language: a device is an Objective-C object that is listed, asked and '
                           'kept by messages',
                           50),
            'sync': ('needs the steps language: a device is an Objective-C object that is listed, asked and kept by '
                     'messages',
                     50),
            'mem_get_info': ('needs the steps language: a device is an Objective-C object that is listed, asked and '
                             'kept by messages',
                             50),
            'pci_bus_id': ('Metal does not tell where a device sits on PCI', 51),
            'device_attribute': ('needs the steps language: a device is an Objective-C object that is listed, asked '
                                 'and kept by messages',
                                 50),
            'device_name': ('needs the steps language: a device is an Objective-C object that is listed, asked and '
                            'kept by messages',
                            50),
            'device_uuid': ('Metal gives a device a 64-bit registry id, not a UUID', 52),
            'device_can_access_peer': ("Apple silicon has one device, and Metal has no access to another device's "
                                       'memory by address',
                                       53),
            'device_enable_peer_access': ("Apple silicon has one device, and Metal has no access to another device's "
                                          'memory by address',
                                          53),
            'device_disable_peer_access': ('Apple silicon has one device, and Metal has no access to another '
                                           "device's memory by address",
                                           53),
            'memcpy_peer': ("Apple silicon has one device, and Metal has no access to another device's memory by "
                            'address',
                            53),
            'memcpy_peer_async': ("Apple silicon has one device, and Metal has no access to another device's memory "
                                  'by address',
                                  53),
            'malloc': ('needs the steps language: memory is a buffer object, and copies and fills are encoded into '
                       'command buffers',
                       54),
            'free': ('needs the steps language: memory is a buffer object, and copies and fills are encoded into '
                     'command buffers',
                     54),
            'memcpy': ('needs the steps language: memory is a buffer object, and copies and fills are encoded into '
                       'command buffers',
                       54),
            'memcpy_async': ('needs the steps language: memory is a buffer object, and copies and fills are encoded '
                             'into command buffers',
                             54),
            'memset': ('needs the steps language: memory is a buffer object, and copies and fills are encoded into '
                       'command buffers',
                       54),
            'memset_async': ('needs the steps language: memory is a buffer object, and copies and fills are encoded '
                             'into command buffers',
                             54),
            'pointer_attributes': ('needs the steps language: memory is a buffer object, and copies and fills are '
                                   'encoded into command buffers',
                                   54),
            'malloc_host': ('needs the steps language: host memory that the device reaches is a buffer object', 55),
            'free_host': ('needs the steps language: host memory that the device reaches is a buffer object', 55),
            'host_register': ('needs the steps language: host memory that the device reaches is a buffer object', 55),
            'host_unregister': ('needs the steps language: host memory that the device reaches is a buffer object',
                                55),
            'host_get_device_pointer': ('needs the steps language: host memory that the device reaches is a buffer '
                                        'object',
                                        55),
            'malloc_managed': ('needs the steps language: memory that host and device share is a buffer object', 56),
            'mem_prefetch': ('Metal has no call that moves shared memory to a device', 57),
            'mem_advise': ('Metal takes no advice on how memory will be used', 58),
            'malloc_async': ('Metal has no stream-ordered allocator', 59),
            'free_async': ('Metal has no stream-ordered allocator', 59),
            'mempool_get_default': ('Metal has no stream-ordered allocator', 59),
            'mempool_get_attribute': ('Metal has no stream-ordered allocator', 59),
            'mempool_set_attribute': ('Metal has no stream-ordered allocator', 59),
            'mempool_trim': ('Metal has no stream-ordered allocator', 59),
            'stream_create': ('needs the steps language: a stream is a command queue and the command buffers in '
                              'flight on it',
                              60),
            'stream_create_flags': ('needs the steps language: a stream is a command queue and the command buffers '
                                    'in flight on it',
                                    60),
            'stream_create_priority': ('command queues of Metal have no priorities', 61),
            'stream_priority_range': ('command queues of Metal have no priorities', 62),
            'stream_destroy': ('needs the steps language: a stream is a command queue and the command buffers in '
                               'flight on it',
                               60),
            'stream_sync': ('needs the steps language: a stream is a command queue and the command buffers in flight '
                            'on it',
                            60),
            'stream_query': ('needs the steps language: a stream is a command queue and the command buffers in '
                             'flight on it',
                             60),
            'stream_wait_event': ('needs the steps language: a stream is a command queue and the command buffers in '
                                  'flight on it',
                                  60),
            'event_create': ('needs the steps language: an event is a shared event object and the command buffer '
                             'that signals it',
                             63),
            'event_create_flags': ('needs the steps language: an event is a shared event object and the command '
                                   'buffer that signals it',
                                   63),
            'event_destroy': ('needs the steps language: an event is a shared event object and the command buffer '
                              'that signals it',
                              63),
            'event_record': ('needs the steps language: an event is a shared event object and the command buffer '
                             'that signals it',
                             63),
            'event_sync': ('needs the steps language: an event is a shared event object and the command buffer that '
                           'signals it',
                           63),
            'event_query': ('needs the steps language: an event is a shared event object and the command buffer that '
                            'signals it',
                            63),
            'event_elapsed': ('needs the steps language: an event is a shared event object and the command buffer '
                              'that signals it',
                              63),
            'get_last_error': ('Metal keeps no last error; each command buffer carries its own', 64),
            'peek_last_error': ('Metal keeps no last error; each command buffer carries its own', 64),
            'ipc_get_mem_handle': ('Metal gives no handle of device memory or of an event as bytes that another '
                                   'process can open',
                                   65),
            'ipc_open_mem_handle': ('Metal gives no handle of device memory or of an event as bytes that another '
                                    'process can open',
                                    65),
            'ipc_close_mem_handle': ('Metal gives no handle of device memory or of an event as bytes that another '
                                     'process can open',
                                     65),
            'ipc_get_event_handle': ('Metal gives no handle of device memory or of an event as bytes that another '
                                     'process can open',
                                     65),
            'ipc_open_event_handle': ('Metal gives no handle of device memory or of an event as bytes that another '
                                      'process can open',
                                      65),
            'stream_begin_capture': ('Metal does not capture the work of a queue into a graph', 66),
            'stream_end_capture': ('Metal does not capture the work of a queue into a graph', 66),
            'stream_is_capturing': ('Metal does not capture the work of a queue into a graph', 66),
            'graph_instantiate': ('Metal does not capture the work of a queue into a graph', 66),
            'graph_exec_update': ('Metal does not capture the work of a queue into a graph', 66),
            'graph_launch': ('Metal does not capture the work of a queue into a graph', 66),
            'graph_destroy': ('Metal does not capture the work of a queue into a graph', 66),
            'graph_exec_destroy': ('Metal does not capture the work of a queue into a graph', 66),
            'mem_granularity': ('Metal does not map physical memory behind addresses apart from its buffers', 67),
            'mem_address_reserve': ('Metal does not map physical memory behind addresses apart from its buffers', 67),
            'mem_address_free': ('Metal does not map physical memory behind addresses apart from its buffers', 67),
            'mem_create': ('Metal does not map physical memory behind addresses apart from its buffers', 67),
            'mem_release': ('Metal does not map physical memory behind addresses apart from its buffers', 67),
            'mem_map': ('Metal does not map physical memory behind addresses apart from its buffers', 67),
            'mem_unmap': ('Metal does not map physical memory behind addresses apart from its buffers', 67),
            'mem_set_access': ('Metal does not map physical memory behind addresses apart from its buffers', 67),
            'module_load': ('needs the steps language: libraries and pipelines are objects, and arguments are bound '
                            'by messages',
                            68),
            'module_unload': ('needs the steps language: libraries and pipelines are objects, and arguments are '
                              'bound by messages',
                              68),
            'module_get_function': ('needs the steps language: libraries and pipelines are objects, and arguments '
                                    'are bound by messages',
                                    68),
            'module_get_global': ('a library of Metal has no global variables that can be found by name', 69),
            'function_get_attribute': ('needs the steps language: libraries and pipelines are objects, and arguments '
                                       'are bound by messages',
                                       68),
            'function_set_attribute': ('a pipeline of Metal cannot be changed after it was made', 70),
            'launch_kernel': ('needs the steps language: libraries and pipelines are objects, and arguments are '
                              'bound by messages',
                              68),
            'monitor_by_pci_bus_id': ('macOS has no management library for GPUs, and Metal does not account memory '
                                      'by process',
                                      71),
            'monitor_by_uuid': ('macOS has no management library for GPUs, and Metal does not account memory by '
                                'process',
                                71),
            'monitor_processes': ('macOS has no management library for GPUs, and Metal does not account memory by '
                                  'process',
                                  71),
            'monitor_memory_used': ('macOS has no management library for GPUs, and Metal does not account memory by '
                                    'process',
                                    71),
            'monitor_memory_total': ('macOS has no management library for GPUs, and Metal does not account memory by '
                                     'process',
                                     71),
            'comm_unique_id': ('there is no collective library for Metal', 72),
            'comm_init_rank': ('there is no collective library for Metal', 72),
            'comm_destroy': ('there is no collective library for Metal', 72),
            'comm_abort': ('there is no collective library for Metal', 72),
            'comm_async_error': ('there is no collective library for Metal', 72),
            'all_reduce': ('there is no collective library for Metal', 72),
            'broadcast': ('there is no collective library for Metal', 72),
            'reduce': ('there is no collective library for Metal', 72),
            'all_gather': ('there is no collective library for Metal', 72),
            'reduce_scatter': ('there is no collective library for Metal', 72),
            'all_to_all': ('there is no collective library for Metal', 72),
            'send': ('there is no collective library for Metal', 72),
            'receive': ('there is no collective library for Metal', 72),
            'group_start': ('there is no collective library for Metal', 72),
            'group_end': ('there is no collective library for Metal', 72)},
 'file': 'backends/metal.yaml'}
