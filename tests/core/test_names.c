/* SPDX-License-Identifier: MIT
 *
 * Suggestions for mistyped names, and the names of the types of values.
 */
#include "support/cmocka_all.h"

#include "algorithm.h"
#include "dtype.h"
#include "nearest.h"

#include <string.h>

static void nearest_name_is_found(void **state)
{
    (void)state;
    static const char *const verbs[] = {"permute", "shuffle", "index",  "gauss",
                                        "uniform", "status",  "leases", NULL};
    static const char *const rows[][2] = {
        {"permut", "permute"},
        {"permuet", "permute"},
        {"PERMUTE", "permute"},
        {"pemute", "permute"},
        {"permuste", "permute"},
        {"shufle", "shuffle"},
        {"lease", "leases"},
        {"unif", "uniform"},
        {"stat", "status"},
        {"guass", "gauss"},
        {"sort", NULL},
        {"x", NULL},
        {"", NULL},
        {"list", NULL},
        {"permutation-of-a-billion", NULL},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__nearest nearest = {.text = rows[i][0]};
        for (int v = 0; verbs[v]; v++)
            shuf__nearest_offer(&nearest, verbs[v]);
        if (!rows[i][1] && nearest.name)
            fail_msg("'%s' is near to %s, expected none", rows[i][0], nearest.name);
        if (rows[i][1] && (!nearest.name || strcmp(nearest.name, rows[i][1]) != 0))
            fail_msg("'%s' is near to %s, expected %s", rows[i][0],
                     nearest.name ? nearest.name : "none", rows[i][1]);
    }
}

static void dtype_names_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        shuf_dtype dtype;
    } rows[] = {
        {"u32", SHUF_U32},
        {"uint32", SHUF_U32},
        {"u4", SHUF_U32},
        {"<u4", SHUF_U32},
        {"u64", SHUF_U64},
        {"uint64", SHUF_U64},
        {"<u8", SHUF_U64},
        {"i64", SHUF_I64},
        {"int64", SHUF_I64},
        {"long", SHUF_I64},
        {"<i8", SHUF_I64},
        {"f64", SHUF_F64},
        {"double", SHUF_F64},
        {"float64", SHUF_F64},
        {"<f8", SHUF_F64},
        {"f8", SHUF_F64},
        {"f32", SHUF_F32},
        {"float32", SHUF_F32},
        {"single", SHUF_F32},
        {"<f4", SHUF_F32},
        {"f16", SHUF_F16},
        {"half", SHUF_F16},
        {"float16", SHUF_F16},
        {"<f2", SHUF_F16},
        {"bf16", SHUF_BF16},
        {"bfloat16", SHUF_BF16},
        {"fp16", SHUF_F16},
        {"fp32", SHUF_F32},
        {"fp64", SHUF_F64},
        {"torch.int64", SHUF_I64},
        {"torch.float16", SHUF_F16},
        {"torch.bfloat16", SHUF_BF16},
        {"torch.float", SHUF_F32},
        {"torch.long", SHUF_I64},
        {"np.uint32", SHUF_U32},
        {"numpy.float64", SHUF_F64},
    };
    struct shuf__error error;
    shuf_dtype dtype;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(shuf__dtype_parse("--dtype", rows[i].name, ~0U, &dtype, &error), SHUF_OK);
        assert_int_equal(dtype, rows[i].dtype);
    }
}

static void wrong_dtypes_are_refused(void **state)
{
    (void)state;
    static const struct {
        enum shuf__distribution distribution;
        const char *name, *message;
    } rows[] = {
        {SHUF_DISTRIBUTION_NONE, "auto", "t auto: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "", "t '': expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "int32",
         "t int32: expected u32, u64 or i64; did you mean uint32?"},
        {SHUF_DISTRIBUTION_NONE, "float32", "t float32: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_GAUSS, "u32", "t u32: expected f64, f32, f16 or bf16"},
        {SHUF_DISTRIBUTION_GAUSS, "flaot32",
         "t flaot32: expected f64, f32, f16 or bf16; did you mean float32?"},
        {SHUF_DISTRIBUTION_UNIFORM, "f16", "t f16: expected u32, u64, f64 or f32"},
        {SHUF_DISTRIBUTION_UNIFORM, "u8",
         "t u8: expected u32, u64, f64 or f32; NumPy's u8 (8 bytes) is u64 or <u8 here"},
        {SHUF_DISTRIBUTION_NONE, "i8",
         "t i8: expected u32, u64 or i64; NumPy's i8 (8 bytes) is i64 or <i8 here"},
        {SHUF_DISTRIBUTION_GAUSS, "i8", "t i8: expected f64, f32, f16 or bf16"},
        {SHUF_DISTRIBUTION_GAUSS, "float",
         "t float: expected f64, f32, f16 or bf16; float has 32 bits in C and PyTorch, 64 in "
         "Python "
         "and NumPy"},
        {SHUF_DISTRIBUTION_UNIFORM, "np.float",
         "t np.float: expected u32, u64, f64 or f32; float has 32 bits in C and PyTorch, 64 in "
         "Python and NumPy"},
        {SHUF_DISTRIBUTION_NONE, "float", "t float: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "torch.int32",
         "t torch.int32: expected u32, u64 or i64; did you mean uint32?"},
        {SHUF_DISTRIBUTION_NONE, "jax.int64", "t jax.int64: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "torch.", "t torch.: expected u32, u64 or i64"},
        {SHUF_DISTRIBUTION_NONE, "i4", "t i4: expected u32, u64 or i64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct shuf__error error;
        shuf_dtype dtype;
        assert_int_equal(shuf__dtype_parse("t", rows[i].name, shuf__dtype_set(rows[i].distribution),
                                           &dtype, &error),
                         SHUF_INVALID);
        assert_string_equal(error.text, rows[i].message);
    }
}

static void mistyped_algorithm_gets_a_hint(void **state)
{
    (void)state;
    struct shuf__error error;
    enum shuf_algorithm algorithm;
    assert_int_equal(shuf__algorithm_parse("philox42", &algorithm, &error), SHUF_INVALID);
    assert_string_equal(error.text, "algorithm \"philox42\": expected primefold, philox24 or lcg; "
                                    "did you mean philox24?");
    assert_int_equal(shuf__algorithm_parse("sattolo", &algorithm, &error), SHUF_INVALID);
    assert_string_equal(error.text, "algorithm \"sattolo\": expected primefold, philox24 or lcg");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest_name_is_found),
        cmocka_unit_test(dtype_names_are_parsed),
        cmocka_unit_test(wrong_dtypes_are_refused),
        cmocka_unit_test(mistyped_algorithm_gets_a_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
