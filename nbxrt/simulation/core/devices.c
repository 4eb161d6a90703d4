/* Devices, the one in force of each thread, access between them, and what the management library says of them. */
#include <ctype.h>

#include "state.h"

struct device sim_devices[MOST_DEVICES];
static int visible[MOST_DEVICES], visible_count;

/* "1,0": the second device first. What is no number, or is no device, ends the list. */
static int read_list(const char *list, int *found)
{
    int count = 0;
    while (*list && count < MOST_DEVICES) {
        char *end;
        long device = strtol(list, &end, 10);
        if (end == list || device < 0 || device >= sim_settings.devices)
            break;
        found[count++] = (int)device;
        list = end + (*end == ',');
    }
    return count;
}

int sim_set_visible(const char *list)
{
    for (int i = 0; i < sim_settings.devices; i++)
        visible[i] = i;
    visible_count = sim_settings.devices;
    if (list && *list)
        visible_count = read_list(list, visible);
    for (const char *const *name = sim_visibility; sim_settings.obey_visibility && *name; name++) {
        const char *value = getenv(*name);
        int chosen[MOST_DEVICES];
        if (!value)
            continue;
        int count = read_list(value, chosen);
        for (int i = 0; i < count; i++)
            chosen[i] = chosen[i] < visible_count ? visible[chosen[i]] : visible[0];
        memcpy(visible, chosen, sizeof chosen);
        visible_count = count;
        break;
    }
    return visible_count;
}

int sim_device_count_visible(void)
{
    return visible_count;
}

int sim_physical(int ordinal)
{
    return ordinal >= 0 && ordinal < visible_count ? visible[ordinal] : -1;
}

int sim_ordinal(int physical)
{
    for (int i = 0; i < visible_count; i++)
        if (visible[i] == physical)
            return i;
    return -1;
}

int sim_current(void)
{
    return sim_physical(sim_thread()->device);
}

int sim_has_context(int device)
{
    int physical = sim_physical(device);
    return physical >= 0 && sim_devices[physical].has_context;
}

int sim_device_count(int *count)
{
    *count = visible_count;
    return KIND_SUCCESS;
}

int sim_set_device(int device)
{
    if (sim_physical(device) < 0)
        return KIND_INVALID_DEVICE;
    sim_thread()->device = device;
    /* where the runtime itself knows threads without a context, choosing the device gives one */
    return sim_roles[0].has_contexts ? sim_make_context(sim_physical(device)) : KIND_SUCCESS;
}

int sim_get_device(int *device)
{
    *device = sim_thread()->device;
    return KIND_SUCCESS;
}

int sim_sync(void)
{
    int device = sim_current();
    sim_wait_device(device);
    sim_pool_trim(&sim_devices[device], sim_devices[device].pool.threshold);
    return sim_devices[device].lost;
}

int sim_mem_get_info(uint64_t *free, uint64_t *total)
{
    const struct device *device = &sim_devices[sim_current()];
    *total = device->memory;
    *free = device->used < device->memory ? device->memory - device->used : 0;
    return KIND_SUCCESS;
}

int sim_pci_bus_id(int device, struct sim_text *pci_bus_id)
{
    int physical = sim_physical(device);
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    snprintf(pci_bus_id->text, sizeof pci_bus_id->text, "%04x:%02x:%02x.0",
             (unsigned)sim_devices[physical].attributes[DEVICE_ATTRIBUTE_PCI_DOMAIN],
             (unsigned)sim_devices[physical].attributes[DEVICE_ATTRIBUTE_PCI_BUS],
             (unsigned)sim_devices[physical].attributes[DEVICE_ATTRIBUTE_PCI_DEVICE]);
    return KIND_SUCCESS;
}

int sim_device_attribute(int attribute, int device, int *value)
{
    int physical = sim_physical(device);
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    *value = sim_devices[physical].attributes[attribute];
    return KIND_SUCCESS;
}

int sim_device_name(int device, struct sim_text *name)
{
    int physical = sim_physical(device);
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    snprintf(name->text, sizeof name->text, "Simulated device %d", physical);
    return KIND_SUCCESS;
}

static void uuid_of(int physical, unsigned char uuid[16])
{
    static const unsigned char stem[16] = {0x5b, 0x1d, 0x3f, 0x77, 0x0c, 0x42, 0x4e, 0x8a,
                                           0x9d, 0x61, 0x20, 0x26, 0x53, 0x49, 0x4d, 0};
    memcpy(uuid, stem, 16);
    uuid[15] = (unsigned char)physical;
}

int sim_device_uuid(int device, struct sim_bytes *uuid)
{
    int physical = sim_physical(device);
    if (physical < 0)
        return KIND_INVALID_DEVICE;
    uuid->nbytes = 16;
    uuid_of(physical, uuid->data);
    return KIND_SUCCESS;
}

/* Peers. */

int sim_device_can_access_peer(int device, int peer, int *can_access)
{
    int from = sim_physical(device), to = sim_physical(peer);
    if (from < 0 || to < 0)
        return KIND_INVALID_DEVICE;
    *can_access = from != to && !(sim_devices[from].unreachable_peers >> to & 1);
    return KIND_SUCCESS;
}

int sim_device_enable_peer_access(int peer)
{
    int to = sim_physical(peer);
    struct device *from = &sim_devices[sim_current()];
    if (to < 0 || to == sim_current())
        return KIND_INVALID_DEVICE;
    if (from->unreachable_peers >> to & 1)
        return KIND_PEER_UNSUPPORTED;
    if (from->enabled_peers >> to & 1)
        return KIND_ALREADY_ENABLED;
    from->enabled_peers |= (uint64_t)1 << to;
    return KIND_SUCCESS;
}

int sim_device_disable_peer_access(int peer)
{
    int to = sim_physical(peer);
    struct device *from = &sim_devices[sim_current()];
    if (to < 0 || to == sim_current())
        return KIND_INVALID_DEVICE;
    if (!(from->enabled_peers >> to & 1))
        return KIND_NOT_ENABLED;
    from->enabled_peers &= ~((uint64_t)1 << to);
    return KIND_SUCCESS;
}

/* Management: handles are of physical devices, whatever the runtime shows. */

static const uint64_t monitors = 0x6d0000000000;

static uint64_t monitor_of(int physical)
{
    return monitors + 64 * (uint64_t)(physical + 1);
}

enum { OF_PART = 32 };                  /* what a part's handle is above the one of its card */

static int device_of(uint64_t monitor)
{
    uint64_t number = (monitor - monitors) / 64;
    int is_one = monitor > monitors && (monitor - monitors) % OF_PART == 0 && number <= (uint64_t)sim_settings.devices;
    return is_one ? (int)number - 1 : -1;
}

/* Whoever has a part of a card may not ask about the whole of it. */
static int is_of_whole(uint64_t monitor)
{
    return sim_devices[device_of(monitor)].part && (monitor - monitors) % 64 == 0;
}

int sim_monitor_by_pci_bus_id(const char *pci_bus_id, uint64_t *monitor)
{
    unsigned domain = 0, bus, place, function = 0;
    if (sscanf(pci_bus_id, "%x:%x:%x.%x", &domain, &bus, &place, &function) < 3)
        return KIND_INVALID_VALUE;
    for (int i = 0; i < sim_settings.devices && function == 0; i++) {
        const int *attributes = sim_devices[i].attributes;
        if (domain != (unsigned)attributes[DEVICE_ATTRIBUTE_PCI_DOMAIN] ||
            bus != (unsigned)attributes[DEVICE_ATTRIBUTE_PCI_BUS] ||
            place != (unsigned)attributes[DEVICE_ATTRIBUTE_PCI_DEVICE])
            continue;
        *monitor = monitor_of(i);
        return KIND_SUCCESS;
    }
    return KIND_NOT_FOUND;
}

/* What stands before a UUID says whether it is of a whole card or of a part. */
static int has_prefix(const char *uuid, const char *prefix)
{
    return !prefix || !strncmp(uuid, prefix, strlen(prefix));
}

static int is_found_by(const char *uuid, const struct device *device)
{
    if (!sim_uuid_prefixes[0])
        return !device->part;
    return device->part < 2 && has_prefix(uuid, sim_uuid_prefixes[device->part]);
}

/* The last 32 hexadecimal digits: libraries put a prefix of their own before them. */
int sim_monitor_by_uuid(const char *uuid, uint64_t *monitor)
{
    char digits[33];
    size_t count = 0, length = strlen(uuid);
    for (size_t i = length > 36 ? length - 36 : 0; i < length; i++)
        if (isxdigit((unsigned char)uuid[i]) && count < 32)
            digits[count++] = (char)tolower((unsigned char)uuid[i]);
    digits[count] = 0;
    for (int i = 0; i < sim_settings.devices; i++) {
        unsigned char own[16];
        char text[33];
        uuid_of(i, own);
        for (int byte = 0; byte < 16; byte++)
            snprintf(text + 2 * byte, 3, "%02x", own[byte]);
        if (!strcmp(text, digits) && is_found_by(uuid, &sim_devices[i])) {
            *monitor = monitor_of(i) + (sim_devices[i].part ? OF_PART : 0);
            return KIND_SUCCESS;
        }
    }
    return KIND_NOT_FOUND;
}

int sim_monitor_processes(uint64_t monitor, struct sim_rows *processes)
{
    int physical = device_of(monitor);
    if (physical < 0)
        return KIND_INVALID_VALUE;
    if (is_of_whole(monitor))
        return KIND_NOT_PERMITTED;
    const struct device *device = &sim_devices[physical];
    if (device->processes_given) {
        *processes = device->processes;
        return KIND_SUCCESS;
    }
    processes->count = device->has_context ? 1 : 0;
    processes->row[0] = (struct sim_row){(uint32_t)getpid(), device->used};
    return KIND_SUCCESS;
}

int sim_monitor_memory_used(uint64_t monitor, uint64_t *used)
{
    int physical = device_of(monitor);
    if (physical < 0)
        return KIND_INVALID_VALUE;
    if (is_of_whole(monitor))
        return KIND_NOT_PERMITTED;
    *used = sim_devices[physical].used;
    return KIND_SUCCESS;
}

int sim_monitor_memory_total(uint64_t monitor, uint64_t *total)
{
    int physical = device_of(monitor);
    if (physical < 0)
        return KIND_INVALID_VALUE;
    if (is_of_whole(monitor))
        return KIND_NOT_PERMITTED;
    *total = sim_devices[physical].memory;
    return KIND_SUCCESS;
}

/* Two cards share a switch; the next two are behind another part of the host. */
int sim_monitor_bus_distance(uint64_t monitor, uint64_t peer, int *distance)
{
    int one = device_of(monitor), other = device_of(peer);
    if (one < 0 || other < 0)
        return KIND_INVALID_VALUE;
    if (is_of_whole(monitor) || is_of_whole(peer))
        return KIND_NOT_PERMITTED;
    *distance = one == other ? BUS_DISTANCE_SAME_BOARD : one / 2 == other / 2 ? BUS_DISTANCE_ONE_SWITCH
                                                                               : BUS_DISTANCE_SYSTEM;
    return KIND_SUCCESS;
}

int sim_monitor_direct_link(uint64_t monitor, uint64_t peer, int *direct)
{
    int one = device_of(monitor), other = device_of(peer);
    if (one < 0 || other < 0)
        return KIND_INVALID_VALUE;
    if (is_of_whole(monitor) || is_of_whole(peer))
        return KIND_NOT_PERMITTED;
    *direct = one != other && !(sim_devices[one].unreachable_peers >> other & 1);
    return KIND_SUCCESS;
}
