/* Settings: from the environment at the first call, and from the control functions. */
#include <errno.h>

#include "state.h"

struct settings sim_settings;
static int settled;

static uint64_t bytes_of(const char *text, uint64_t otherwise)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (end == text || errno)
        return otherwise;
    switch (*end) {
    case 'K': return value << 10;
    case 'M': return value << 20;
    case 'G': return value << 30;
    default: return value;
    }
}

static int set_attribute(const char *text)
{
    for (int word = 0; word < DEVICE_ATTRIBUTE_COUNT; word++) {
        size_t length = strlen(device_attribute_words[word]);
        if (!strncmp(text, device_attribute_words[word], length) && text[length] == '=') {
            for (int device = 0; device < MOST_DEVICES; device++)
                sim_devices[device].attributes[word] = atoi(text + length + 1);
            return 0;
        }
    }
    return -1;
}

static void usual_devices(uint64_t memory)
{
    for (int i = 0; i < MOST_DEVICES; i++) {
        int *attributes = sim_devices[i].attributes;
        memset(attributes, 0, sizeof sim_devices[i].attributes);
        attributes[DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
        attributes[DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK] = 48 << 10;
        attributes[DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN] = 227 << 10;
        attributes[DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR] = 228 << 10;
        attributes[DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK] = 65536;
        attributes[DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
        attributes[DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = 16;
        attributes[DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9;
        attributes[DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY] = 1;
        attributes[DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING] = 1;
        attributes[DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1;
        attributes[DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 1;
        attributes[DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1;
        attributes[DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_SUPPORTED] = 1;
        attributes[DEVICE_ATTRIBUTE_PCI_BUS] = 0x10 + i;
        attributes[DEVICE_ATTRIBUTE_CLOCK_RATE] = 1500000;
        attributes[DEVICE_ATTRIBUTE_L2_CACHE_SIZE] = 32 << 20;
        attributes[DEVICE_ATTRIBUTE_MAX_GRID_X] = 0x7fffffff;
        attributes[DEVICE_ATTRIBUTE_MAX_GRID_Y] = 65535;
        attributes[DEVICE_ATTRIBUTE_MAX_GRID_Z] = 65535;
        sim_devices[i].memory = memory;
        sim_devices[i].unreachable_peers = 0;
        sim_devices[i].processes_given = 0;
        sim_devices[i].part = 0;
    }
}

static int model_of(const char *word)
{
    for (int model = 0; sim_models[model]; model++)
        if (!strcmp(word, sim_models[model]))
            return model;
    return -1;
}

/* "first,second": the models of the devices in turn, and from the beginning again. */
int sim_set_models(const char *list)
{
    int models[MOST_DEVICES], count = 0;
    char text[1024];
    snprintf(text, sizeof text, "%s", list ? list : "");
    for (char *next = NULL, *word = strtok_r(text, ",", &next); word && count < MOST_DEVICES;
         word = strtok_r(NULL, ",", &next))
        if ((models[count++] = model_of(word)) < 0)
            return -1;
    for (int i = 0; i < MOST_DEVICES; i++)
        sim_devices[i].model = count ? models[i % count] : 0;
    return 0;
}

static int starts_with_one(const char *name)
{
    const char *value = getenv(name);
    return value && *value == '1';
}

void sim_settle(void)
{
    if (settled)
        return;
    settled = 1;
    sim_survive_forks();
    const char *devices = getenv("NBXRT_SIM_DEVICES"), *memory = getenv("NBXRT_SIM_MEMORY");
    const char *latency = getenv("NBXRT_SIM_LATENCY_US");
    int count = devices && *devices ? atoi(devices) : 2;
    sim_settings.devices = count < 0 ? 0 : count > MOST_DEVICES ? MOST_DEVICES : count;
    sim_settings.no_driver = starts_with_one("NBXRT_SIM_NO_DRIVER");
    sim_settings.obey_visibility = starts_with_one("NBXRT_SIM_OBEY_VISIBILITY");
    const char *driver_version = getenv("NBXRT_SIM_DRIVER_VERSION"), *context = getenv("NBXRT_SIM_CONTEXT");
    sim_settings.context = context ? bytes_of(context, 0) : 0;
    sim_settings.driver_version = driver_version && *driver_version ? atoi(driver_version) : -1;
    sim_settings.latency_ns = latency ? strtoull(latency, NULL, 0) * 1000 : 0;
    usual_devices(memory ? bytes_of(memory, (uint64_t)16 << 30) : (uint64_t)16 << 30);
    sim_forget_faults();
    sim_each_part("NBXRT_SIM_ATTRIBUTES", set_attribute);
    sim_faults_from_environment();
    sim_set_visible(getenv("NBXRT_SIM_VISIBLE"));
    const char *models = getenv("NBXRT_SIM_MODELS");
    if (sim_set_models(models && *models ? models : sim_models[0]))
        sim_complain("NBXRT_SIM_MODELS", models, -1);
    sim_log_from_environment();
}

void sim_forget_settings(void)
{
    settled = 0;
}
