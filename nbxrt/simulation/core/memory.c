/* Memory of devices and of the host, and copies and fills as they are asked for. */
#include "state.h"

/* Device memory. */

static int allocate(enum origin origin, uint64_t nbytes, uint64_t *address)
{
    struct block *block;
    *address = 0;
    if (!nbytes)
        return KIND_SUCCESS;
    int kind = sim_block_new(origin, sim_current(), nbytes, &block);
    if (!kind)
        *address = block->address;
    return kind;
}

int sim_malloc(uint64_t nbytes, uint64_t *address)
{
    return allocate(FROM_MALLOC, nbytes, address);
}

int sim_free(uint64_t address)
{
    if (!address)
        return KIND_SUCCESS;
    struct block *block = sim_block_of(address);
    if (!block || block->freeing || block->body)
        return KIND_INVALID_VALUE;
    if (block->origin != FROM_MALLOC && block->origin != FROM_MANAGED && block->origin != FROM_POOL)
        return KIND_INVALID_VALUE;
    int device = block->device;
    sim_run_range(address, block->nbytes);
    sim_wait_device(device);
    block = sim_block_of(address);      /* the lock was given back while waiting */
    if (!block)
        return KIND_INVALID_VALUE;
    sim_block_release(block);
    return KIND_SUCCESS;
}

/* Which side of a copy must be where, by direction. */
static const enum side sides[MEMCPY_KIND_COUNT][2] = {
    [MEMCPY_KIND_HOST_TO_HOST] = {SIDE_HOST, SIDE_HOST},
    [MEMCPY_KIND_HOST_TO_DEVICE] = {SIDE_DEVICE, SIDE_HOST},
    [MEMCPY_KIND_DEVICE_TO_HOST] = {SIDE_HOST, SIDE_DEVICE},
    [MEMCPY_KIND_DEVICE_TO_DEVICE] = {SIDE_DEVICE, SIDE_DEVICE},
    [MEMCPY_KIND_DEFAULT] = {SIDE_ANY, SIDE_ANY},
};

static int is_on_device(uint64_t address)
{
    struct block *block = sim_block_at(address);
    return block && block->memory == MEMORY_TYPE_DEVICE;
}

static int give_copy(uint64_t dst, uint64_t src, uint64_t nbytes, int direction, struct stream *stream)
{
    int kind = sim_range(dst, nbytes, sides[direction][0], stream->device, 1);
    if (!kind)
        kind = sim_range(src, nbytes, sides[direction][1], stream->device, 0);
    if (kind)
        return kind;
    struct item *item = sim_item(WORK_COPY);
    item->dst = dst;
    item->src = src;
    item->nbytes = nbytes;
    item->known = (sim_block_at(dst) ? KNOWN_DST : 0) | (sim_block_at(src) ? KNOWN_SRC : 0);
    return sim_enqueue(stream, item);
}

static int give_fill(uint64_t address, int value, uint64_t nbytes, struct stream *stream)
{
    int kind = sim_range(address, nbytes, SIDE_DEVICE, stream->device, 1);
    if (kind)
        return kind;
    struct item *item = sim_item(WORK_FILL);
    item->dst = address;
    item->value = value;
    item->nbytes = nbytes;
    item->known = KNOWN_DST;
    return sim_enqueue(stream, item);
}

int sim_memcpy(uint64_t dst, uint64_t src, uint64_t nbytes, int kind)
{
    struct stream *stream = sim_stream(0);
    if (!nbytes)
        return KIND_SUCCESS;
    int between_devices = is_on_device(dst) && is_on_device(src);
    int answer = give_copy(dst, src, nbytes, kind, stream);
    if (answer || between_devices)      /* no host memory has to be ready: it returns before the copy is done */
        return answer;
    sim_wait_stream(stream, UINT64_MAX);
    return sim_devices[stream->device].lost;
}

int sim_memcpy_async(uint64_t dst, uint64_t src, uint64_t nbytes, int kind, uint64_t stream)
{
    struct stream *on = sim_stream(stream);
    if (!on)
        return KIND_INVALID_HANDLE;
    return nbytes ? give_copy(dst, src, nbytes, kind, on) : KIND_SUCCESS;
}

int sim_memset(uint64_t address, int value, uint64_t nbytes)
{
    struct stream *stream = sim_stream(0);
    if (!nbytes)
        return KIND_SUCCESS;
    int answer = give_fill(address, value, nbytes, stream);
    if (answer || is_on_device(address))
        return answer;
    sim_wait_stream(stream, UINT64_MAX);
    return sim_devices[stream->device].lost;
}

int sim_memset_async(uint64_t address, int value, uint64_t nbytes, uint64_t stream)
{
    struct stream *on = sim_stream(stream);
    if (!on)
        return KIND_INVALID_HANDLE;
    return nbytes ? give_fill(address, value, nbytes, on) : KIND_SUCCESS;
}

static int belongs_to(uint64_t address, int physical)
{
    struct block *block = sim_block_at(address);
    return block && (block->memory != MEMORY_TYPE_DEVICE || block->device == physical);
}

static int give_peer_copy(uint64_t dst, int dst_device, uint64_t src, int src_device, uint64_t nbytes,
                          struct stream *stream)
{
    int to = sim_physical(dst_device), from = sim_physical(src_device);
    if (to < 0 || from < 0)
        return KIND_INVALID_DEVICE;
    if (!belongs_to(dst, to) || !belongs_to(src, from))
        return KIND_INVALID_VALUE;
    int kind = sim_range(dst, nbytes, SIDE_DEVICE, to, 1);
    if (!kind)
        kind = sim_range(src, nbytes, SIDE_DEVICE, from, 0);
    if (kind)
        return kind;
    struct item *item = sim_item(WORK_COPY);
    item->dst = dst;
    item->src = src;
    item->nbytes = nbytes;
    item->known = KNOWN_DST | KNOWN_SRC;
    return sim_enqueue(stream, item);
}

int sim_memcpy_peer(uint64_t dst, int dst_device, uint64_t src, int src_device, uint64_t nbytes)
{
    return nbytes ? give_peer_copy(dst, dst_device, src, src_device, nbytes, sim_stream(0)) : KIND_SUCCESS;
}

int sim_memcpy_peer_async(uint64_t dst, int dst_device, uint64_t src, int src_device, uint64_t nbytes, uint64_t stream)
{
    struct stream *on = sim_stream(stream);
    if (!on)
        return KIND_INVALID_HANDLE;
    return nbytes ? give_peer_copy(dst, dst_device, src, src_device, nbytes, on) : KIND_SUCCESS;
}

int sim_pointer_attributes(uint64_t address, int *memory, int *device, uint64_t *device_address, uint64_t *host_address)
{
    struct block *block = sim_block_at(address);
    if (!address)
        return KIND_INVALID_VALUE;
    *memory = block ? block->memory : MEMORY_TYPE_UNREGISTERED;
    *device = block ? sim_ordinal(block->device) : -1;
    *device_address = block ? address : 0;
    *host_address = block && block->memory != MEMORY_TYPE_DEVICE ? address : 0;
    return KIND_SUCCESS;
}

/* Host memory. */

int sim_malloc_host(uint64_t nbytes, uint64_t *address)
{
    return allocate(FROM_HOST, nbytes, address);
}

static int release_host(uint64_t address, enum origin origin, int otherwise)
{
    struct block *block = sim_block_of(address);
    if (!block || block->origin != origin)
        return otherwise;
    sim_run_range(address, block->nbytes);
    block = sim_block_of(address);
    if (!block)
        return otherwise;
    sim_block_release(block);
    return KIND_SUCCESS;
}

int sim_free_host(uint64_t address)
{
    return address ? release_host(address, FROM_HOST, KIND_INVALID_VALUE) : KIND_SUCCESS;
}

int sim_host_register(uint64_t address, uint64_t nbytes)
{
    if (!address || !nbytes || address + nbytes < address)
        return KIND_INVALID_VALUE;
    for (size_t i = 0; sim_block_number(i); i++) {
        struct block *block = sim_block_number(i);
        if (block->address < address + nbytes && address < block->address + block->nbytes)
            return block->memory == MEMORY_TYPE_HOST ? KIND_ALREADY_REGISTERED : KIND_INVALID_VALUE;
    }
    sim_block_add((struct block){.address = address, .nbytes = nbytes, .origin = FROM_REGISTER,
                                 .memory = MEMORY_TYPE_HOST, .device = sim_current()});
    return KIND_SUCCESS;
}

int sim_host_unregister(uint64_t address)
{
    return release_host(address, FROM_REGISTER, address ? KIND_NOT_REGISTERED : KIND_INVALID_VALUE);
}

int sim_host_get_device_pointer(uint64_t address, uint64_t *device_address)
{
    struct block *block = sim_block_at(address);
    if (!block || block->memory != MEMORY_TYPE_HOST)
        return KIND_INVALID_VALUE;
    *device_address = address;
    return KIND_SUCCESS;
}

/* Managed memory. */

int sim_malloc_managed(uint64_t nbytes, uint64_t *address)
{
    if (!sim_devices[sim_current()].attributes[DEVICE_ATTRIBUTE_MANAGED_MEMORY])
        return KIND_NOT_SUPPORTED;
    return allocate(FROM_MANAGED, nbytes, address);
}

static int is_managed(uint64_t address, uint64_t nbytes)
{
    struct block *block = sim_block_at(address);
    return block && block->origin == FROM_MANAGED && address + nbytes <= block->address + block->nbytes;
}

int sim_mem_prefetch(uint64_t address, uint64_t nbytes, int device, uint64_t stream)
{
    struct stream *on = sim_stream(stream);
    if (sim_physical(device) < 0)
        return KIND_INVALID_DEVICE;
    if (!on)
        return KIND_INVALID_HANDLE;
    return is_managed(address, nbytes) ? sim_enqueue(on, sim_item(WORK_NOTHING)) : KIND_INVALID_VALUE;
}

int sim_mem_advise(uint64_t address, uint64_t nbytes, int advice, int device)
{
    (void)advice;
    if (sim_physical(device) < 0)
        return KIND_INVALID_DEVICE;
    return is_managed(address, nbytes) ? KIND_SUCCESS : KIND_INVALID_VALUE;
}
