/* Virtual memory: ranges of addresses, physical memory, and the one behind the other. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "state.h"

struct range { struct range *next; uint64_t address, nbytes; };
static struct range *ranges;

static int is_whole(uint64_t nbytes)
{
    return nbytes && nbytes % GRANULARITY == 0;
}

static void *as_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static int offers_it(int physical)
{
    return sim_devices[physical].attributes[DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_SUPPORTED];
}

int sim_mem_granularity(int device, uint64_t *nbytes)
{
    int physical = sim_physical(device);
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    if (!offers_it(physical))
        return KIND_NOT_SUPPORTED;
    *nbytes = GRANULARITY;
    return KIND_SUCCESS;
}

/* A mapping at a multiple of the alignment: more is asked for, and both ends are given back. */
static uint64_t reserve_aligned(uint64_t nbytes, uint64_t alignment)
{
    uint64_t asked = nbytes + alignment;
    void *wish = sim_wished_address(MOST_DEVICES, asked);
    void *place = mmap(wish, asked, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED)
        return 0;
    uint64_t start = (uint64_t)(uintptr_t)place, address = (start + alignment - 1) / alignment * alignment;
    if (address > start)
        munmap(place, address - start);
    if (address + nbytes < start + asked)
        munmap(as_pointer(address + nbytes), start + asked - address - nbytes);
    return address;
}

int sim_mem_address_reserve(uint64_t nbytes, uint64_t alignment, uint64_t *address)
{
    if (!is_whole(nbytes) || (alignment & (alignment - 1)))
        return KIND_INVALID_VALUE;
    if (nbytes > (uint64_t)1 << 46)
        return KIND_OUT_OF_MEMORY;
    *address = reserve_aligned(nbytes, alignment > GRANULARITY ? alignment : GRANULARITY);
    if (!*address)
        return KIND_OUT_OF_MEMORY;
    struct range *made = malloc(sizeof *made);
    *made = (struct range){ranges, *address, nbytes};
    ranges = made;
    return KIND_SUCCESS;
}

static struct block *mapped_within(uint64_t address, uint64_t nbytes)
{
    for (size_t i = 0; sim_block_number(i); i++) {
        struct block *block = sim_block_number(i);
        if (block->address < address + nbytes && address < block->address + block->nbytes)
            return block;
    }
    return NULL;
}

int sim_mem_address_free(uint64_t address, uint64_t nbytes)
{
    for (struct range **place = &ranges; *place; place = &(*place)->next) {
        struct range *range = *place;
        if (range->address != address || (nbytes && range->nbytes != nbytes))
            continue;
        nbytes = range->nbytes;         /* some vendors' functions take the address alone */
        if (mapped_within(address, nbytes))
            return KIND_INVALID_VALUE;
        munmap(as_pointer(address), nbytes);
        *place = range->next;
        free(range);
        return KIND_SUCCESS;
    }
    return KIND_INVALID_VALUE;
}

/* Physical memory that other processes import is a file of its own, with a page behind it that says what it is. */
struct passport { char magic[8]; int32_t device; uint64_t nbytes; };

static int new_file(uint64_t nbytes, int device)
{
#if defined(__linux__)
    struct passport written = {"simpages", device, nbytes};
    int file = memfd_create("nbxrt-simulated-pages", MFD_CLOEXEC);
    if (file >= 0 && !ftruncate(file, (off_t)(nbytes + PAGE))
        && pwrite(file, &written, sizeof written, (off_t)nbytes) == (ssize_t)sizeof written)
        return file;
    if (file >= 0)
        close(file);
#else
    (void)nbytes, (void)device;
#endif
    return -1;
}

static int read_passport(int file, struct passport *found)
{
    struct stat facts;
    if (fstat(file, &facts) || facts.st_size <= PAGE)
        return 0;
    uint64_t nbytes = (uint64_t)facts.st_size - PAGE;
    return pread(file, found, sizeof *found, (off_t)nbytes) == (ssize_t)sizeof *found
           && !memcmp(found->magic, "simpages", 8) && found->nbytes == nbytes;
}

static uint64_t new_allocation(struct allocation made)
{
    struct allocation *kept = malloc(sizeof *kept);
    *kept = made;
    return sim_handle_new(HANDLE_ALLOCATION, kept);
}

int sim_mem_create(uint64_t nbytes, int device, int sharing, uint64_t *allocation)
{
    int physical = sim_physical(device);
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    if (!offers_it(physical))
        return KIND_NOT_SUPPORTED;
    if (!is_whole(nbytes))
        return KIND_INVALID_VALUE;
    struct device *owner = &sim_devices[physical];
    if (owner->used > owner->memory || nbytes > owner->memory - owner->used || sim_backing() < 0)
        return KIND_OUT_OF_MEMORY;
    int is_shared = sharing == MEM_SHARING_FILE, file = is_shared ? new_file(nbytes, physical) : -1;
    if (is_shared && file < 0)
        return KIND_NOT_SUPPORTED;
    owner->used += nbytes;
    *allocation = new_allocation((struct allocation){.device = physical, .handles = 1, .file = file, .nbytes = nbytes,
                                                     .offset = is_shared ? 0 : sim_backing_room(nbytes)});
    return KIND_SUCCESS;
}

/* Physical memory goes when it has neither a handle nor an address. */
static void forget_if_unused(struct allocation *allocation)
{
    if (allocation->handles || allocation->maps)
        return;
    if (!allocation->is_foreign)
        sim_devices[allocation->device].used -= allocation->nbytes;
    if (allocation->file >= 0)
        close(allocation->file);
    else
        sim_backing_forget(allocation->offset, allocation->nbytes);
    free(allocation);
}

void sim_allocation_unmapped(struct allocation *allocation)
{
    allocation->maps--;
    forget_if_unused(allocation);
}

int sim_mem_release(uint64_t allocation)
{
    struct allocation *released = sim_handle_get(HANDLE_ALLOCATION, allocation);
    if (!released)
        return KIND_INVALID_VALUE;
    sim_handle_drop(allocation);
    released->handles--;
    forget_if_unused(released);
    return KIND_SUCCESS;
}

int sim_mem_retain(uint64_t address, uint64_t *allocation)
{
    const struct block *block = sim_block_at(address);
    if (!block || block->origin != FROM_MAP)
        return KIND_INVALID_VALUE;
    block->allocation->handles++;
    *allocation = sim_handle_new(HANDLE_ALLOCATION, block->allocation);
    return KIND_SUCCESS;
}

int sim_mem_export(uint64_t allocation, int *file)
{
    const struct allocation *exported = sim_handle_get(HANDLE_ALLOCATION, allocation);
    if (!exported || exported->file < 0)
        return KIND_INVALID_VALUE;
    *file = fcntl(exported->file, F_DUPFD_CLOEXEC, 0);
    return *file < 0 ? KIND_SYSTEM_ERROR : KIND_SUCCESS;
}

int sim_mem_import(int file, uint64_t *allocation)
{
    struct passport found;
    if (!read_passport(file, &found) || found.device < 0 || found.device >= sim_settings.devices)
        return KIND_INVALID_VALUE;
    if (!offers_it(found.device))
        return KIND_NOT_SUPPORTED;
    int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return KIND_SYSTEM_ERROR;
    *allocation = new_allocation((struct allocation){.device = found.device, .handles = 1, .file = own, .is_foreign = 1,
                                                     .nbytes = found.nbytes});
    return KIND_SUCCESS;
}

static int is_reserved(uint64_t address, uint64_t nbytes)
{
    for (const struct range *range = ranges; range; range = range->next)
        if (address >= range->address && nbytes <= range->nbytes && address - range->address <= range->nbytes - nbytes)
            return 1;
    return 0;
}

int sim_mem_map(uint64_t address, uint64_t nbytes, uint64_t offset, uint64_t allocation)
{
    struct allocation *mapped = sim_handle_get(HANDLE_ALLOCATION, allocation);
    if (!mapped || !is_whole(nbytes) || address % GRANULARITY || offset % GRANULARITY)
        return KIND_INVALID_VALUE;
    if (offset > mapped->nbytes || nbytes > mapped->nbytes - offset || !is_reserved(address, nbytes))
        return KIND_INVALID_VALUE;
    if (mapped_within(address, nbytes))
        return KIND_INVALID_VALUE;
    int file = mapped->file >= 0 ? mapped->file : sim_backing();
    void *place = mmap(as_pointer(address), nbytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file,
                       (off_t)(mapped->offset + offset));
    if (place == MAP_FAILED)
        return KIND_OUT_OF_MEMORY;
    mapped->maps++;
    sim_block_add((struct block){.address = address, .nbytes = nbytes, .origin = FROM_MAP, .memory = MEMORY_TYPE_DEVICE,
                                 .device = mapped->device, .allocation = mapped});
    return KIND_SUCCESS;
}

/* Whether the range is whole mappings from its first to its last byte. */
static int is_mapped_exactly(uint64_t address, uint64_t nbytes)
{
    while (nbytes) {
        const struct block *block = sim_block_of(address);
        if (!block || block->origin != FROM_MAP || block->nbytes > nbytes)
            return 0;
        address += block->nbytes;
        nbytes -= block->nbytes;
    }
    return 1;
}

/* Nobody waits here for work that uses the memory: such work finds nothing, and the context is lost. */
int sim_mem_unmap(uint64_t address, uint64_t nbytes)
{
    const struct block *first = sim_block_of(address);
    if (!nbytes && first && first->address == address)
        nbytes = first->nbytes;         /* some vendors' functions take the address alone */
    if (!nbytes || !is_mapped_exactly(address, nbytes))
        return KIND_INVALID_VALUE;
    mmap(as_pointer(address), nbytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    while (nbytes) {
        struct block *block = sim_block_of(address);
        address += block->nbytes;
        nbytes -= block->nbytes;
        sim_allocation_unmapped(block->allocation);
        sim_block_remove(block);
    }
    return KIND_SUCCESS;
}

int sim_mem_set_access(uint64_t address, uint64_t nbytes, int device, int access)
{
    int physical = sim_physical(device);
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    if (!nbytes || !is_mapped_exactly(address, nbytes))
        return KIND_INVALID_VALUE;
    uint64_t bit = (uint64_t)1 << physical;
    for (uint64_t at = address; at < address + nbytes;) {
        struct block *block = sim_block_of(at);
        block->readable = access == MEM_ACCESS_NONE ? block->readable & ~bit : block->readable | bit;
        block->writable = access == MEM_ACCESS_READ_WRITE ? block->writable | bit : block->writable & ~bit;
        mprotect(as_pointer(at), block->nbytes, block->readable ? PROT_READ | PROT_WRITE : PROT_NONE);
        at += block->nbytes;
    }
    return KIND_SUCCESS;
}

void sim_ranges_forget(void)
{
    while (ranges)
        if (sim_mem_address_free(ranges->address, ranges->nbytes))
            break;
}

size_t sim_ranges_text(char *buffer, size_t size)
{
    size_t used = 0;
    for (const struct range *range = ranges; range; range = range->next) {
        size_t left = used < size ? size - used : 0;
        used += (size_t)snprintf(left ? buffer + used : NULL, left, "range\t%llu\t%llu\t-1\n",
                                 (unsigned long long)range->address, (unsigned long long)range->nbytes);
    }
    return used;
}
