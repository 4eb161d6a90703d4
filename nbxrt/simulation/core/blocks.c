/* Memory that the runtime knows: the pages behind it, blocks by address, and what a copy may touch. */
#include <fcntl.h>
#include <sys/mman.h>

#include "state.h"

/* All memory is pages of one file: another process can map them, and virtual memory can be put anywhere. */
static int backing = -1;
static pid_t backing_owner;
static uint64_t backing_end;

static struct block **blocks;           /* sorted by address */
static size_t block_count, block_room;

uint64_t sim_whole_pages(uint64_t nbytes)
{
    return (nbytes + PAGE - 1) / PAGE * PAGE;
}

static int open_backing(void)
{
#if defined(__linux__)
    int file = memfd_create("nbxrt-simulated-memory", MFD_CLOEXEC);
#else
    FILE *unnamed = tmpfile();
    int file = unnamed ? dup(fileno(unnamed)) : -1;
    if (unnamed)
        fclose(unnamed);
#endif
    if (file >= 0 && ftruncate(file, (off_t)1 << 45)) {
        close(file);
        file = -1;
    }
    return file;
}

int sim_backing(void)
{
    if (backing < 0 || backing_owner != getpid()) {
        backing = open_backing();
        backing_owner = getpid();
        backing_end = 0;
    }
    return backing;
}

uint64_t sim_backing_room(uint64_t nbytes)
{
    uint64_t offset = backing_end;
    backing_end += sim_whole_pages(nbytes);
    return offset;
}

void sim_backing_forget(uint64_t offset, uint64_t nbytes)
{
#if defined(FALLOC_FL_PUNCH_HOLE)
    if (backing >= 0 && backing_owner == getpid())
        fallocate(backing, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)sim_whole_pages(nbytes));
#else
    (void)offset, (void)nbytes;
#endif
}

/* Blocks. */

static size_t place_of(uint64_t address)
{
    size_t low = 0, high = block_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (blocks[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;                         /* the first block behind the address */
}

struct block *sim_block_at(uint64_t address)
{
    size_t place = place_of(address);
    struct block *block = place ? blocks[place - 1] : NULL;
    return block && address - block->address < block->nbytes ? block : NULL;
}

struct block *sim_block_of(uint64_t address)
{
    struct block *block = sim_block_at(address);
    return block && block->address == address ? block : NULL;
}

struct block *sim_block_number(size_t index)
{
    return index < block_count ? blocks[index] : NULL;
}

struct block *sim_block_add(struct block block)
{
    if (block_count == block_room) {
        block_room = block_room ? 2 * block_room : 256;
        blocks = realloc(blocks, block_room * sizeof *blocks);
    }
    struct block *made = malloc(sizeof *made);
    *made = block;
    size_t place = place_of(block.address);
    memmove(blocks + place + 1, blocks + place, (block_count - place) * sizeof *blocks);
    blocks[place] = made;
    block_count++;
    return made;
}

void sim_block_remove(struct block *block)
{
    size_t place = place_of(block->address) - 1;
    memmove(blocks + place, blocks + place + 1, (block_count - place - 1) * sizeof *blocks);
    block_count--;
    free(block);
}

/* Where the system allows it, all that the simulator maps lies between two addresses that nothing else uses. Addresses
   grow, so that one that was released is not soon given out again, and its late use is noticed. */
static const uint64_t region_start = 0x640000000000, region_end = 0x780000000000, region_room = (uint64_t)1 << 37;

void *sim_wished_address(int device, uint64_t nbytes)
{
    static uint64_t next[MOST_DEVICES + 2];
    int place = device + 1;             /* 0 for memory of the host, MOST_DEVICES + 1 for reserved ranges */
    uint64_t start = region_start + (uint64_t)place * region_room;
    if (nbytes >= region_room)
        return NULL;
    if (next[place] + nbytes + PAGE > region_room)
        next[place] = 0;
    void *address = (void *)(uintptr_t)(start + next[place]);
    next[place] += sim_whole_pages(nbytes) + PAGE;
    return address;
}

static int is_in_region(uint64_t address)
{
    return address >= region_start && address < region_end;
}

static int counts_on_device(enum origin origin)
{
    return origin == FROM_MALLOC || origin == FROM_MODULE;
}

/* New memory holds no zeros, as on a device. */
static void spoil(void *address, uint64_t nbytes)
{
    memset(address, 0xa5, nbytes < PAGE ? nbytes : PAGE);
}

int sim_block_new(enum origin origin, int device, uint64_t nbytes, struct block **made)
{
    static const int memory_of[ORIGIN_COUNT] = {
        [FROM_MALLOC] = MEMORY_TYPE_DEVICE, [FROM_POOL] = MEMORY_TYPE_DEVICE, [FROM_MODULE] = MEMORY_TYPE_DEVICE,
        [FROM_HOST] = MEMORY_TYPE_HOST, [FROM_MANAGED] = MEMORY_TYPE_MANAGED};
    struct device *owner = &sim_devices[device];
    uint64_t free = owner->used < owner->memory ? owner->memory - owner->used : 0;
    if (nbytes > (uint64_t)1 << 44 || (counts_on_device(origin) && nbytes > free))
        return KIND_OUT_OF_MEMORY;
    int file = sim_backing();
    uint64_t mapped = sim_whole_pages(nbytes), offset = sim_backing_room(nbytes);
    void *wish = sim_wished_address(origin == FROM_HOST || origin == FROM_MANAGED ? -1 : device, mapped);
    void *address = file < 0 ? MAP_FAILED : mmap(wish, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)offset);
    if (address == MAP_FAILED)
        return KIND_OUT_OF_MEMORY;
    spoil(address, nbytes);
    if (counts_on_device(origin))
        owner->used += nbytes;
    *made = sim_block_add((struct block){.address = (uint64_t)(uintptr_t)address, .nbytes = nbytes, .mapped = mapped,
                                         .offset = offset, .origin = origin, .memory = memory_of[origin],
                                         .device = device});
    return KIND_SUCCESS;
}

void sim_block_release(struct block *block)
{
    struct device *owner = &sim_devices[block->device];
    if (counts_on_device(block->origin))
        owner->used -= block->nbytes;
    if (block->origin == FROM_POOL)
        owner->pool.used -= block->nbytes;
    if (block->mapped) {
        munmap((void *)(uintptr_t)block->address, block->mapped);
        if (block->origin != FROM_IPC)
            sim_backing_forget(block->offset, block->mapped);
    }
    sim_block_remove(block);
}

/* What a copy may touch. */

static int usable(const struct block *block, enum side side, int device, int writes)
{
    if (block->freeing && !sim_running)     /* work that was given before the release may still use it */
        return 0;
    if (block->origin == FROM_MAP)
        return side != SIDE_HOST && ((writes ? block->writable : block->readable) >> device & 1);
    if (block->memory == MEMORY_TYPE_DEVICE)
        return side != SIDE_HOST && (!sim_contexts_are_apart || block->device == device);
    return 1;
}

int sim_range(uint64_t address, uint64_t nbytes, enum side side, int device, int writes)
{
    struct block *block = sim_block_at(address);
    if (address < PAGE || address + nbytes < address)
        return KIND_INVALID_VALUE;
    if (!block) {                       /* the host's own memory, as far as the next block */
        struct block *next = sim_block_number(place_of(address));
        int runs_into_it = next && next->address - address < nbytes && next->memory == MEMORY_TYPE_DEVICE;
        return side == SIDE_DEVICE || runs_into_it || is_in_region(address) ? KIND_INVALID_VALUE : KIND_SUCCESS;
    }
    while (block) {
        if (!usable(block, side, device, writes))
            return KIND_INVALID_VALUE;
        uint64_t here = block->address + block->nbytes - address;
        if (nbytes <= here)
            return KIND_SUCCESS;
        if (block->origin != FROM_MAP)  /* only mapped memory may go on in the next block */
            return block->origin == FROM_REGISTER && side != SIDE_DEVICE ? KIND_SUCCESS : KIND_INVALID_VALUE;
        address += here;
        nbytes -= here;
        block = sim_block_of(address);
    }
    return KIND_INVALID_VALUE;
}
