/* SPDX-License-Identifier: MIT
 *
 * A fake tool of NVTX, in the place of Nsight Systems. It writes the name of each range to
 * $SHUF_TEST_RANGES, and a line with a dot at the end of the range.
 */
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int file = -1;

static int begin_range(const char *name)
{
    return dprintf(file, "%s\n", name);
}

static int end_range(void)
{
    return dprintf(file, ".\n");
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of);

__attribute__((visibility("default"))) int
InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of)
{
    unsigned size;
    NvtxFunctionTable table;
    const NvtxExportTableCallbacks *callbacks = table_of(NVTX_ETID_CALLBACKS);
    const char *path = getenv("SHUF_TEST_RANGES");
    if (!path || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size))
        return 0;
    file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    *table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)begin_range;
    *table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)end_range;
    return 1;
}
