/* Stream-ordered memory: a pool reserves what it needs, and keeps at a synchronisation what its threshold allows. */
#include "state.h"

static const uint64_t pools = 0x6b0000000000;

static struct device *pool_owner(uint64_t pool)
{
    uint64_t number = (pool - pools) / 64;
    int is_one = pool > pools && (pool - pools) % 64 == 0 && number <= (uint64_t)sim_settings.devices;
    return is_one ? &sim_devices[number - 1] : NULL;
}

static int reserve(struct device *device, uint64_t nbytes)
{
    struct pool *pool = &device->pool;
    uint64_t wanted = pool->used + nbytes, more = wanted > pool->reserved ? wanted - pool->reserved : 0;
    uint64_t free = device->used < device->memory ? device->memory - device->used : 0;
    if (more > free)
        return KIND_OUT_OF_MEMORY;
    device->used += more;
    pool->reserved += more;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return KIND_SUCCESS;
}

void sim_pool_trim(struct device *device, uint64_t keep)
{
    struct pool *pool = &device->pool;
    uint64_t left = keep > pool->used ? keep : pool->used;
    if (pool->reserved > left) {
        device->used -= pool->reserved - left;
        pool->reserved = left;
    }
}

int sim_malloc_async(uint64_t nbytes, uint64_t stream, uint64_t *address)
{
    struct stream *on = sim_stream(stream);
    struct block *block;
    *address = 0;
    if (!on)
        return KIND_INVALID_HANDLE;
    struct device *device = &sim_devices[on->device];
    if (!device->attributes[DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED])
        return KIND_NOT_SUPPORTED;
    if (!nbytes)
        return KIND_SUCCESS;
    int kind = on->capture ? KIND_SUCCESS : sim_capture_forbids(OP_MALLOC);  /* as seen on a card */
    if (!kind)
        kind = reserve(device, nbytes);
    if (!kind)
        kind = sim_block_new(FROM_POOL, on->device, nbytes, &block);
    if (kind)
        return kind;
    block->body = on->capture ? on->capture->body : NULL;
    device->pool.used += nbytes;
    if (device->pool.used > device->pool.used_high)
        device->pool.used_high = device->pool.used;
    *address = block->address;
    return sim_enqueue(on, sim_item(WORK_NOTHING));
}

int sim_free_async(uint64_t address, uint64_t stream)
{
    struct stream *on = sim_stream(stream);
    struct block *block = sim_block_of(address);
    if (!on)
        return KIND_INVALID_HANDLE;
    if (!address)
        return KIND_SUCCESS;
    if (!block || block->origin != FROM_POOL || block->freeing)
        return KIND_INVALID_VALUE;
    struct item *item = sim_item(block->body ? WORK_NOTHING : WORK_RELEASE);
    item->dst = address;
    int kind = sim_enqueue(on, item);
    if (!kind && !block->body)
        block->freeing = 1;
    return kind;
}

int sim_mempool_get_default(int device, uint64_t *pool)
{
    int physical = sim_physical(device);
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    if (!sim_devices[physical].attributes[DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED])
        return KIND_NOT_SUPPORTED;
    *pool = pools + 64 * (uint64_t)(physical + 1);
    return KIND_SUCCESS;
}

static uint64_t *pool_value(struct pool *pool, int attribute)
{
    switch (attribute) {
    case MEMPOOL_ATTRIBUTE_RELEASE_THRESHOLD: return &pool->threshold;
    case MEMPOOL_ATTRIBUTE_RESERVED_CURRENT: return &pool->reserved;
    case MEMPOOL_ATTRIBUTE_RESERVED_HIGH: return &pool->reserved_high;
    case MEMPOOL_ATTRIBUTE_USED_CURRENT: return &pool->used;
    case MEMPOOL_ATTRIBUTE_USED_HIGH: return &pool->used_high;
    default: return NULL;
    }
}

int sim_mempool_get_attribute(uint64_t pool, int attribute, uint64_t *value)
{
    struct device *owner = pool_owner(pool);
    uint64_t *place = owner ? pool_value(&owner->pool, attribute) : NULL;
    if (!place)
        return KIND_INVALID_VALUE;
    *value = *place;
    return KIND_SUCCESS;
}

/* The threshold takes any value, the high marks are only set back to 0, the rest is the pool's own business. */
int sim_mempool_set_attribute(uint64_t pool, int attribute, uint64_t value)
{
    struct device *owner = pool_owner(pool);
    if (!owner)
        return KIND_INVALID_VALUE;
    if (attribute == MEMPOOL_ATTRIBUTE_RELEASE_THRESHOLD)
        owner->pool.threshold = value;
    else if (attribute == MEMPOOL_ATTRIBUTE_RESERVED_HIGH && !value)
        owner->pool.reserved_high = owner->pool.reserved;
    else if (attribute == MEMPOOL_ATTRIBUTE_USED_HIGH && !value)
        owner->pool.used_high = owner->pool.used;
    else
        return KIND_INVALID_VALUE;
    return KIND_SUCCESS;
}

int sim_mempool_trim(uint64_t pool, uint64_t keep)
{
    struct device *owner = pool_owner(pool);
    if (!owner)
        return KIND_INVALID_VALUE;
    sim_pool_trim(owner, keep);
    return KIND_SUCCESS;
}
