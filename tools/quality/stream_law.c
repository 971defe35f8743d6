/* SPDX-License-Identifier: MIT
 *
 * See stream.h. An expectation is computed as a sum over nodes, each with a weight. For a
 * coarse type the nodes are all of its values. The weight is the probability of the numbers that
 * are rounded to the value. For other types the sum is a numerical integral, by Gauss-Legendre
 * rules on short intervals. It is exact to the last digits.
 */
#include "stream.h"

#include "shuf/half.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_integration.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RULE = 8, PANELS_A_UNIT = 16, REACH = 16 };

const char *const shuf__function_names[SHUF__FUNCTIONS] = {"values", "squares", "magnitudes"};

/* ---- Types ---- */

int shuf__dtype_digits(shuf_dtype dtype)
{
    static const int digits[SHUF__DTYPES] = {
        [SHUF_F64] = 53, [SHUF_F32] = 24, [SHUF_F16] = 11, [SHUF_BF16] = 8};
    return digits[dtype];
}

double shuf__dtype_round(shuf_dtype dtype, double value)
{
    if (dtype == SHUF_F64)
        return value;
    const float narrow = (float)value;
    if (dtype == SHUF_F32)
        return narrow;
    return dtype == SHUF_F16 ? shuf_of_f16(shuf_f16(narrow)) : shuf_of_bf16(shuf_bf16(narrow));
}

static double half_value(shuf_dtype dtype, uint16_t half)
{
    return dtype == SHUF_F16 ? shuf_of_f16(half) : shuf_of_bf16(half);
}

void shuf__dtype_decode(shuf_dtype dtype, const void *bytes, size_t count, double *value)
{
    const float *single = bytes;
    const uint16_t *half = bytes;
    if (dtype == SHUF_F64)
        memcpy(value, bytes, count * sizeof *value);
    else if (dtype == SHUF_F32)
        for (size_t i = 0; i < count; i++)
            value[i] = single[i];
    else
        for (size_t i = 0; i < count; i++)
            value[i] = half_value(dtype, half[i]);
}

/* ---- The law without rounding ---- */

double shuf__law_below(const struct shuf__stream_law *law, double z)
{
    if (!law->uniform)
        return 0.5 * erfc(-z * M_SQRT1_2);
    return fmin(fmax(0.5 + z / sqrt(12), 0), 1);
}

double shuf__law_above(const struct shuf__stream_law *law, double z)
{
    return shuf__law_below(law, -z); /* both laws are symmetric */
}

static double share(const struct shuf__stream_law *law, double low, double high)
{
    return low > 0 ? shuf__law_above(law, low) - shuf__law_above(law, high)
                   : shuf__law_below(law, high) - shuf__law_below(law, low);
}

/* ---- Nodes ---- */

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static size_t list_values(shuf_dtype dtype, double *value)
{
    size_t count = 0;
    for (uint32_t code = 0; code < 65536; code++) {
        const double v = half_value(dtype, (uint16_t)code);
        if (fabs(v) <= REACH && code != 0x8000) /* leaves out -0, which equals 0 */
            value[count++] = v;
    }
    qsort(value, count, sizeof *value, by_value);
    return count;
}

static void make_rounded(struct shuf__stream_law *law)
{
    law->nodes = list_values(law->dtype, law->node);
    for (size_t i = 0; i < law->nodes; i++) {
        law->upper[i] =
            i + 1 < law->nodes ? (law->node[i] + law->node[i + 1]) / 2 : (double)INFINITY;
        law->weight[i] = share(law, i > 0 ? law->upper[i - 1] : -(double)INFINITY, law->upper[i]);
    }
}

static void make_continuous(struct shuf__stream_law *law)
{
    const double reach = law->uniform ? sqrt(3) : REACH;
    const int panels = 2 * PANELS_A_UNIT * (law->uniform ? 2 : REACH);
    const double width = 2 * reach / panels;
    gsl_integration_glfixed_table *rule = gsl_integration_glfixed_table_alloc(RULE);
    for (int panel = 0; panel < panels; panel++)
        for (size_t i = 0; i < RULE; i++) {
            double *z = &law->node[law->nodes], *weight = &law->weight[law->nodes++];
            const double low = -reach + panel * width;
            gsl_integration_glfixed_point(low, low + width, i, z, weight, rule);
            *weight *= law->uniform ? 1 / sqrt(12) : exp(-*z * *z / 2) / sqrt(2 * M_PI);
        }
    gsl_integration_glfixed_table_free(rule);
}

/* The mean of the k-th power of a uniform number between `low` and `high`. */
static double even_power(double low, double high, int k)
{
    double sum = 0;
    for (int i = 0; i <= k; i++)
        sum += pow(low, i) * pow(high, k - i);
    return sum / (k + 1);
}

static void take_spread(struct shuf__stream_law *law)
{
    double second = 0, fourth = 0;
    for (size_t i = 0; i < law->nodes; i++) {
        const bool inside = law->rounded && i > 0 && i + 1 < law->nodes;
        const double low = inside ? law->upper[i - 1] : law->node[i];
        const double high = inside ? law->upper[i] : law->node[i];
        second += law->weight[i] * even_power(low, high, 2);
        fourth += law->weight[i] * even_power(low, high, 4);
    }
    law->spread_variance = second;
    law->spread_kurtosis = fourth / (second * second) - 3;
}

static void take_moments(struct shuf__stream_law *law)
{
    double second[SHUF__FUNCTIONS] = {0};
    for (size_t i = 0; i < law->nodes; i++) {
        const double z = law->node[i], w = law->weight[i], f[] = {z, z * z, fabs(z)};
        for (int k = 0; k < SHUF__FUNCTIONS; k++) {
            law->mean[k] += w * f[k];
            second[k] += w * f[k] * f[k];
        }
    }
    for (int k = 0; k < SHUF__FUNCTIONS; k++)
        law->variance[k] = second[k] - law->mean[k] * law->mean[k];
    for (size_t i = 0; i < law->nodes; i++) {
        const double square = law->node[i] * law->node[i], w = law->weight[i];
        law->fourth_mean += w * square * square;
        law->fourth_variance += w * pow(square, 4);
        law->square_kurtosis += w * pow((square - law->mean[1]), 4);
    }
    law->fourth_variance -= law->fourth_mean * law->fourth_mean;
    law->square_kurtosis = law->square_kurtosis / (law->variance[1] * law->variance[1]) - 3;
}

static struct shuf__cosine cosine_of(const struct shuf__stream_law *law, double t)
{
    struct shuf__cosine cosine = {.power = {1}};
    for (size_t i = 0; i < law->nodes; i++) {
        const double c = cos(t * law->node[i]);
        double power = law->weight[i];
        for (unsigned k = 1; k <= 4; k++)
            cosine.power[k] += power *= c;
    }
    cosine.mean = cosine.power[1];
    cosine.variance = cosine.power[2] - cosine.mean * cosine.mean;
    for (size_t i = 0; i < law->nodes; i++)
        cosine.fourth += law->weight[i] * pow(cos(t * law->node[i]) - cosine.mean, 4);
    cosine.fourth /= cosine.variance * cosine.variance;
    return cosine;
}

double shuf__law_likeness(const struct shuf__stream_law *law)
{
    double sum = 0;
    for (size_t i = 0; i < law->nodes; i++) {
        const double z = law->node[i], density = exp(-z * z / 2) / sqrt(2 * M_PI);
        sum += law->weight[i] * density * ldexp(1, ilogb(z) + 1 - shuf__dtype_digits(law->dtype));
    }
    return sum;
}

/* ---- Cells ---- */

static size_t find_node(const struct shuf__stream_law *law, double z)
{
    size_t low = 0, high = law->nodes - 1;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (z < law->upper[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* Moves an edge to the middle between two values of the type. So all numbers that are rounded to a
 * value are on the same side of the edge. */
static double snap(const struct shuf__stream_law *law, double edge)
{
    return law->rounded ? law->upper[find_node(law, edge)] : edge;
}

static void guess(struct shuf__cells *cells)
{
    unsigned k = 0;
    cells->low = cells->edge[1];
    cells->per_z = (SHUF__GUESSES - 1) / (cells->edge[cells->count - 1] - cells->low);
    for (unsigned g = 1; g < SHUF__GUESSES; g++) {
        const double z = cells->low + (g - 0.01) / cells->per_z;
        while (cells->edge[k + 1] <= z)
            k++;
        cells->guess[g] = (uint16_t)k;
    }
    cells->guess[0] = 0;
}

static double normal_quantile(double p)
{
    return gsl_cdf_ugaussian_Pinv(p);
}

static double uniform_quantile(double p)
{
    return (p - 0.5) * sqrt(12);
}

static double squares_quantile(double p)
{
    return gsl_cdf_chisq_Pinv(p, 32);
}

static void make_cells(struct shuf__cells *cells, unsigned count, double (*quantile)(double p),
                       const struct shuf__stream_law *of_law)
{
    cells->count = count;
    cells->edge[0] = -(double)INFINITY;
    cells->edge[count] = (double)INFINITY;
    for (unsigned k = 1; k < count; k++) {
        const double edge = quantile((double)k / count);
        cells->edge[k] = of_law ? snap(of_law, edge) : edge;
    }
    for (unsigned k = 0; k < count; k++)
        cells->p[k] = of_law ? share(of_law, cells->edge[k], cells->edge[k + 1]) : 1.0 / count;
    guess(cells);
}

shuf_status shuf__stream_law_make(struct shuf__stream_law *law, bool uniform, shuf_dtype dtype,
                                  struct shuf__error *error)
{
    enum { ROOM = 1 << 16 };
    *law = (struct shuf__stream_law){.uniform = uniform, .dtype = dtype};
    law->rounded = dtype == SHUF_F16 || dtype == SHUF_BF16;
    law->node = calloc(ROOM, sizeof *law->node);
    law->weight = calloc(ROOM, sizeof *law->weight);
    law->upper = calloc(ROOM, sizeof *law->upper);
    if (!law->node || !law->weight || !law->upper) {
        shuf__stream_law_free(law);
        return shuf__fail(error, SHUF_NO_MEMORY, "no memory");
    }
    (law->rounded ? make_rounded : make_continuous)(law);
    take_moments(law);
    take_spread(law);
    for (unsigned k = 0; k < SHUF__FREQUENCIES && !uniform; k++)
        law->cosine[k] = cosine_of(law, (k + 1) * SHUF__FREQUENCY);
    make_cells(&law->cells, SHUF__CELLS, uniform ? uniform_quantile : normal_quantile, law);
    make_cells(&law->transformed, SHUF__CELLS / 4, normal_quantile, NULL);
    make_cells(&law->squares, SHUF__CELLS / 4, squares_quantile, NULL);
    return SHUF_OK;
}

void shuf__stream_law_free(struct shuf__stream_law *law)
{
    free(law->node);
    free(law->weight);
    free(law->upper);
    *law = (struct shuf__stream_law){0};
}

/* ---- Spread ---- */

/* Makes a pseudo-random number from 0 to 1 from `number`, by the mixer of SplitMix64 (Steele, Lea,
 * Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014). */
static double scatter(uint64_t number)
{
    uint64_t h = (number + 1) * UINT64_C(0x9E3779B97F4A7C15);
    h = (h ^ h >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    h = (h ^ h >> 27) * UINT64_C(0x94D049BB133111EB);
    return ((double)((h ^ h >> 31) >> 11) + 0.5) * 0x1p-53;
}

double shuf__law_below_spread(const struct shuf__stream_law *law, double z, uint64_t number)
{
    if (!law->rounded)
        return shuf__law_below(law, z);
    const size_t i = find_node(law, z);
    const double low = i > 0 ? shuf__law_below(law, law->upper[i - 1]) : 0;
    return low + scatter(number) * (shuf__law_below(law, law->upper[i]) - low);
}

double shuf__law_above_spread(const struct shuf__stream_law *law, double z, uint64_t number)
{
    return shuf__law_below_spread(law, -z, number);
}

void shuf__law_spread(const struct shuf__stream_law *law, const double *z, size_t count,
                      uint64_t number, double *spread)
{
    const int least = law->dtype == SHUF_F16 ? -14 : -126; /* least exponent, normalised */
    const int digits = shuf__dtype_digits(law->dtype);
    if (!law->rounded) {
        memcpy(spread, z, count * sizeof *z);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const double size = fabs(z[i]);
        const int exponent = size < ldexp(1, least) ? least : ilogb(size);
        const double power = ldexp(1, exponent), half = ldexp(1, exponent - digits);
        const double low = size - (size == power && exponent > least ? half / 2 : half);
        spread[i] = copysign(low + scatter(number + i) * (size + half - low), z[i]);
    }
}

/* ---- Anderson and Darling ---- */

/* The series of Anderson and Darling ("Asymptotic theory of certain goodness of fit criteria based
 * on stochastic processes", Annals of Mathematical Statistics 23, 1952). Its integrals are computed
 * by the trapezoid rule. */
static double anderson_darling_below(double a2)
{
    const double step = 1.0 / 64;
    double sum = 0, factor = 1;
    for (int j = 0; j < 12; j++) {
        const double root = (4 * j + 1) * M_PI / sqrt(8 * a2);
        double integral = exp(a2 / 8) / 2;
        for (int i = 1; i < 448; i++) {
            const double t = i * step, w = t / root;
            integral += exp(a2 / (8 * (w * w + 1)) - t * t);
        }
        sum += factor * (4 * j + 1) * exp(-root * root) * integral * step / root;
        factor *= -(j + 0.5) / (j + 1);
    }
    return sqrt(2 * M_PI) / a2 * sum;
}

/* The tail decreases like exp(-a2), times a factor that changes slowly and only makes it smaller.
 */
double shuf__law_anderson_darling(double a2)
{
    const double most = 20, above = 1 - anderson_darling_below(fmin(fmax(a2, 0.01), most));
    return fmin(fmax(above, 1e-12), 1) * (a2 > most ? exp(most - a2) : 1);
}
