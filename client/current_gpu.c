/* SPDX-License-Identifier: MIT
 *
 * See current_gpu.h. This file never loads libcuda: a program that has not loaded it has no CUDA
 * context.
 */
#include "current_gpu.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the current context ---- */

static bool find(void *library, const char *symbol, void *function)
{
    void *address = dlsym(library, symbol);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static bool uuid_of_context(void *library, uint8_t uuid[16])
{
    int device;
    int (*get_device)(int *device);
    int (*get_uuid)(uint8_t uuid[16], int device);
    return find(library, "cuCtxGetDevice", (void *)&get_device) &&
           find(library, "cuDeviceGetUuid_v2", (void *)&get_uuid) && get_device(&device) == 0 &&
           get_uuid(uuid, device) == 0;
}

static void write_uuid(const uint8_t uuid[16], char id[SHUF__GPU_ID])
{
    char *out = stpcpy(id, "GPU");
    for (int i = 0; i < 16; i++) {
        const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
        out += sprintf(out, "%s%02x", dash ? "-" : "", uuid[i]);
    }
}

void shuf__gpu_of_context(struct shuf__gpu_hint *hint)
{
    uint8_t uuid[16];
    void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);
    *hint = (struct shuf__gpu_hint){.why = "none"};
    if (library && uuid_of_context(library, uuid)) {
        write_uuid(uuid, hint->id);
        hint->names_gpu = true;
        snprintf(hint->why, sizeof hint->why, "%s", hint->id);
    }
    if (library)
        dlclose(library);
}

/* ---- CUDA_VISIBLE_DEVICES ---- */

/* Reads the word behind a key of the GPU's file. False if the key is not there. */
static bool read_gpu(const char *gpus, const char *name, const char *key, char word[SHUF__GPU_ID])
{
    char path[1024], line[256];
    bool found = false;
    snprintf(path, sizeof path, "%s/%s/information", gpus, name);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file))
        found =
            strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%47s", word) == 1;
    if (file)
        fclose(file);
    return found;
}

/* Whether this process may use the device file of the GPU. The control group of a job or a
 * container may allow only some GPUs. CUDA counts these, and the directory lists all. */
static bool is_usable(const char *gpus, const char *name)
{
    char path[64], minor[SHUF__GPU_ID];
    if (!read_gpu(gpus, name, "Device Minor:", minor))
        return true;
    snprintf(path, sizeof path, "/dev/nvidia%s", minor);
    return access(path, R_OK | W_OK) == 0;
}

static int is_gpu(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The name of each directory is the GPU's address on the bus. All names have the same length, so
 * their order is the order of CUDA's indices. A process that may use no GPU cannot mean CUDA's
 * indices, so it gets all GPUs. */
static int scan_gpus(const char *path, struct dirent ***names)
{
    const int found = scandir(path, names, is_gpu, alphasort);
    int usable = 0, count = 0;
    for (int i = 0; i < found; i++)
        usable += is_usable(path, (*names)[i]->d_name);
    for (int i = 0; i < found; i++)
        if (usable > 0 && !is_usable(path, (*names)[i]->d_name))
            free((*names)[i]);
        else
            (*names)[count++] = (*names)[i];
    return count;
}

static bool is_by_place(int gpus)
{
    const char *order = getenv("CUDA_DEVICE_ORDER");
    return gpus == 1 || (order && strcmp(order, "PCI_BUS_ID") == 0);
}

/* SHUFD_GPUS replaces the directory for tests, as in the generator of the instances. */
static void take_index(unsigned long index, struct shuf__gpu_hint *hint)
{
    struct dirent **names = NULL;
    const char *given = getenv("SHUFD_GPUS"), *path = given ? given : "/proc/driver/nvidia/gpus";
    const int count = scan_gpus(path, &names);
    hint->names_gpu = count > 0;
    if (count > 0 && !is_by_place(count))
        snprintf(hint->why, sizeof hint->why,
                 "index %lu, which names a GPU only with CUDA_DEVICE_ORDER=PCI_BUS_ID", index);
    else if (index < (unsigned long)count) {
        read_gpu(path, names[index]->d_name, "GPU UUID:", hint->id);
        snprintf(hint->why, sizeof hint->why, "index %lu: %s", index, hint->id);
    } else if (count > 0)
        snprintf(hint->why, sizeof hint->why, "index %lu: no such GPU; this process may use %d",
                 index, count);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

void shuf__gpu_of_environment(struct shuf__gpu_hint *hint)
{
    const char *value = getenv("CUDA_VISIBLE_DEVICES");
    const size_t length = value ? strcspn(value, ",") : 0;
    *hint = (struct shuf__gpu_hint){.why = "not set"};
    if (!value)
        return;
    snprintf(hint->why, sizeof hint->why, "%.*s", (int)(length < 48 ? length : 48), value);
    hint->names_gpu = strncmp(value, "GPU-", 4) == 0;
    if (hint->names_gpu && length < sizeof hint->id)
        memcpy(hint->id, value, length);
    else if (isdigit((unsigned char)value[0]) && strspn(value, "0123456789") == length)
        take_index(strtoul(value, NULL, 10), hint);
}
