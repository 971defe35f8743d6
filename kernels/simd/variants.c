/* SPDX-License-Identifier: MIT
 *
 * Chooses the best instruction set of this processor, among those for which the loops are compiled.
 */
#include "simd/simd_ops.h"

#include <stdbool.h>
#include <string.h>

extern const struct shuf__simd_ops shuf__simd_ops_scalar, shuf__simd_ops_neon;

static bool always(void)
{
    return true;
}

#ifdef SHUF_SIMD_X86
extern const struct shuf__simd_ops shuf__simd_ops_avx2, shuf__simd_ops_avx512;

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
           __builtin_cpu_supports("fma"); /* F16C needs no test: every processor with AVX2 has it */
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("bmi2");
}
#endif

const char *const shuf__simd_names[SHUF__SIMD_SETS] = {"avx512", "avx2", "neon", "scalar"};

/* The sets of this architecture, best first. */
static const struct {
    const struct shuf__simd_ops *simd;
    bool (*runs_here)(void);
} variants[] = {
#ifdef SHUF_SIMD_X86
    {&shuf__simd_ops_avx512, has_avx512},
    {&shuf__simd_ops_avx2, has_avx2},
#endif
#ifdef SHUF_SIMD_AARCH64
    {&shuf__simd_ops_neon, always}, /* all processors have it */
#endif
    {&shuf__simd_ops_scalar, always},
};

shuf_status shuf__simd_choose(const char *name, const struct shuf__simd_ops **simd,
                              struct shuf__error *error)
{
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        bool named = name && strcmp(name, variants[i].simd->name) == 0;
        if ((named || !name) && variants[i].runs_here()) {
            *simd = variants[i].simd;
            return SHUF_OK;
        }
    }
    for (size_t i = 0; i < SHUF__SIMD_SETS; i++)
        if (strcmp(name, shuf__simd_names[i]) == 0)
            return shuf__fail(error, SHUF_DEVICE, "backend cpu:%s: this processor has no %s", name,
                              name);
    return shuf__fail(error, SHUF_INVALID,
                      "backend cpu:%.64s: expected avx512, avx2, neon or scalar", name);
}
