/* Elements of collectives: sizes, and reduction in each element type. */
#include <math.h>

#include "state.h"
#include "numbers.h"

size_t sim_element_size(int datatype)
{
    switch (datatype) {
    case DATATYPE_INT8: case DATATYPE_UINT8: case DATATYPE_FLOAT8_E4M3: case DATATYPE_FLOAT8_E5M2: return 1;
    case DATATYPE_FLOAT16: case DATATYPE_BFLOAT16: return 2;
    case DATATYPE_INT32: case DATATYPE_UINT32: case DATATYPE_FLOAT32: return 4;
    case DATATYPE_INT64: case DATATYPE_UINT64: case DATATYPE_FLOAT64: return 8;
    default: return 0;
    }
}

/* Small floats: a sign, `exponent` bits, `mantissa` bits. Without infinities the largest exponent holds numbers too. */
struct format { int exponent, mantissa, infinities; };

static double decode(struct format format, unsigned bits)
{
    int bias = (1 << (format.exponent - 1)) - 1, top = (1 << format.exponent) - 1;
    unsigned fraction = bits & ((1u << format.mantissa) - 1);
    int exponent = (int)(bits >> format.mantissa) & top;
    double sign = bits >> (format.exponent + format.mantissa) & 1 ? -1 : 1;
    if (exponent == top && format.infinities)
        return fraction ? NAN : sign * INFINITY;
    if (exponent == top && fraction == (1u << format.mantissa) - 1)
        return NAN;
    if (!exponent)
        return sign * ldexp(fraction, 1 - bias - format.mantissa);
    return sign * ldexp(1 + ldexp(fraction, -format.mantissa), exponent - bias);
}

/* To the nearest, ties to even, by rounding to a multiple of the last place. */
static unsigned encode(struct format format, double value)
{
    int bias = (1 << (format.exponent - 1)) - 1, top = (1 << format.exponent) - 1, exponent;
    unsigned sign = (unsigned)(signbit(value) != 0) << (format.exponent + format.mantissa);
    unsigned ones = (1u << format.mantissa) - 1;
    unsigned too_large = format.infinities ? (unsigned)top << format.mantissa : (unsigned)top << format.mantissa | ones;
    if (isnan(value))
        return sign | (unsigned)top << format.mantissa | ones;
    if (isinf(value))
        return sign | too_large;
    frexp(value, &exponent);
    if (exponent - 1 < 1 - bias)
        exponent = 2 - bias;
    double places = nearbyint(ldexp(fabs(value), format.mantissa - exponent + 1));
    if (places >= ldexp(1, format.mantissa + 1)) {
        places /= 2;
        exponent++;
    }
    if (places < ldexp(1, format.mantissa))
        return sign | (unsigned)places;
    unsigned fraction = (unsigned)(places - ldexp(1, format.mantissa));
    unsigned bits = ((unsigned)(exponent - 1 + bias) << format.mantissa) + fraction;
    return sign | (exponent - 1 + bias > top || bits >= too_large ? too_large : bits);
}

static const struct format formats[DATATYPE_COUNT] = {
    [DATATYPE_FLOAT16] = {5, 10, 1}, [DATATYPE_BFLOAT16] = {8, 7, 1},
    [DATATYPE_FLOAT8_E4M3] = {4, 3, 0}, [DATATYPE_FLOAT8_E5M2] = {5, 2, 1}};

static double load_float(int datatype, const void *from)
{
    unsigned bits = 0;
    float single;
    double whole;
    if (datatype == DATATYPE_FLOAT64)
        return memcpy(&whole, from, 8), whole;
    if (datatype == DATATYPE_FLOAT32)
        return memcpy(&single, from, 4), single;
    if (sim_element_size(datatype) == 2) {
        uint16_t half;
        memcpy(&half, from, 2);
        bits = half;
    } else {
        bits = *(const uint8_t *)from;
    }
    return decode(formats[datatype], bits);
}

static void store_float(int datatype, void *to, double value)
{
    float single = (float)value;
    if (datatype == DATATYPE_FLOAT64)
        memcpy(to, &value, 8);
    else if (datatype == DATATYPE_FLOAT32)
        memcpy(to, &single, 4);
    else if (sim_element_size(datatype) == 2)
        memcpy(to, &(uint16_t){(uint16_t)encode(formats[datatype], value)}, 2);
    else
        *(uint8_t *)to = (uint8_t)encode(formats[datatype], value);
}

static int is_float(int datatype)
{
    return datatype == DATATYPE_FLOAT32 || datatype == DATATYPE_FLOAT64 || formats[datatype].exponent;
}

static int is_signed(int datatype)
{
    return datatype == DATATYPE_INT8 || datatype == DATATYPE_INT32 || datatype == DATATYPE_INT64;
}

static uint64_t load_integer(int datatype, const void *from)
{
    int8_t byte;
    int32_t word;
    uint32_t unsigned_word;
    uint64_t whole;
    switch (datatype) {
    case DATATYPE_INT8: return memcpy(&byte, from, 1), (uint64_t)(int64_t)byte;
    case DATATYPE_UINT8: return *(const uint8_t *)from;
    case DATATYPE_INT32: return memcpy(&word, from, 4), (uint64_t)(int64_t)word;
    case DATATYPE_UINT32: return memcpy(&unsigned_word, from, 4), unsigned_word;
    default: return memcpy(&whole, from, 8), whole;
    }
}

static void store_integer(int datatype, void *to, uint64_t value)
{
    uint8_t byte = (uint8_t)value;
    uint32_t word = (uint32_t)value;
    size_t size = sim_element_size(datatype);
    memcpy(to, size == 1 ? (void *)&byte : size == 4 ? (void *)&word : (void *)&value, size);
}

static double joined_floats(int reduction, double one, double other)
{
    switch (reduction) {
    case REDUCTION_PROD: return one * other;
    case REDUCTION_MAX: return one > other ? one : other;
    case REDUCTION_MIN: return one < other ? one : other;
    default: return one + other;
    }
}

static uint64_t joined_integers(int reduction, int datatype, uint64_t one, uint64_t other)
{
    int larger = is_signed(datatype) ? (int64_t)one > (int64_t)other : one > other;
    switch (reduction) {
    case REDUCTION_PROD: return one * other;
    case REDUCTION_MAX: return larger ? one : other;
    case REDUCTION_MIN: return larger ? other : one;
    default: return one + other;
    }
}

static void reduce_floats(int datatype, int reduction, const char *const *rows, int count, char *to)
{
    double value = load_float(datatype, rows[0]);
    for (int row = 1; row < count; row++)
        value = joined_floats(reduction, value, load_float(datatype, rows[row]));
    store_float(datatype, to, reduction == REDUCTION_AVG ? value / count : value);
}

static void reduce_integers(int datatype, int reduction, const char *const *rows, int count, char *to)
{
    uint64_t value = load_integer(datatype, rows[0]);
    for (int row = 1; row < count; row++)
        value = joined_integers(reduction, datatype, value, load_integer(datatype, rows[row]));
    if (reduction == REDUCTION_AVG)
        value = is_signed(datatype) ? (uint64_t)((int64_t)value / count) : value / (uint64_t)count;
    store_integer(datatype, to, value);
}

void sim_reduce_rows(int datatype, int reduction, const char *const *rows, int count, uint64_t elements, char *to)
{
    size_t size = sim_element_size(datatype);
    const char *at[SIM_MOST_RANKS];
    for (uint64_t element = 0; element < elements; element++) {
        for (int row = 0; row < count; row++)
            at[row] = rows[row] + element * size;
        (is_float(datatype) ? reduce_floats : reduce_integers)(datatype, reduction, at, count, to + element * size);
    }
}
