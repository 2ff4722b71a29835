#include "common/parse.h"

#include <errno.h>
#include <math.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The digits at *at into *out; false where there are none or they do not fit. */
static bool take_digits(const char **at, uint64_t *out)
{
    uint64_t value = 0;
    const char *c = *at;
    for (; is_digit(*c); c++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
            return false;
    }
    if (c == *at)
        return false;
    *at = c;
    *out = value;
    return true;
}

/* Whether all of the text is digits: then only its size can be wrong. */
static bool is_digits(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

int parse_u64(const char *text, uint64_t *out, struct error *err)
{
    const char *at = text;
    uint64_t value;
    if (!take_digits(&at, &value) || *at != '\0')
        return error_set(
            err, E_INVALID,
            is_digits(text) ? "'%s' is too large" : "'%s' is not a whole number, 0 or more", text);
    *out = value;
    return 0;
}

int parse_i64(const char *text, int64_t *out, struct error *err)
{
    bool negative = text[0] == '-';
    const char *at = text + negative;
    uint64_t value;
    uint64_t limit = (uint64_t)INT64_MAX + negative;
    if (!take_digits(&at, &value) || *at != '\0' || value > limit)
        return error_set(err, E_INVALID,
                         is_digits(text + negative) ? "'%s' is out of bounds"
                                                    : "'%s' is not a whole number",
                         text);
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return 0;
}

int parse_double(const char *text, double *out, struct error *err)
{
    /* strtod also takes leading space, hex floats, "inf" and "nan". */
    bool plain = text[0] != '\0' && text[strspn(text, "0123456789+-.eE")] == '\0';
    char *end = NULL;
    errno = 0;
    double value = plain ? strtod(text, &end) : 0;
    if (!plain || end == text || *end != '\0' || !isfinite(value))
        return error_set(err, E_INVALID, "'%s' is not a decimal number", text);
    *out = value;
    return 0;
}

struct unit {
    const char *name;
    uint64_t factor;
};

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define TIB (1ull << 40)
#define PIB (1ull << 50)
#define EIB (1ull << 60)

static const struct unit size_units[] = {
    {"", 1},      {"b", 1},    {"k", KIB},   {"kb", KIB},  {"ki", KIB},  {"kib", KIB}, {"m", MIB},
    {"mb", MIB},  {"mi", MIB}, {"mib", MIB}, {"g", GIB},   {"gb", GIB},  {"gi", GIB},  {"gib", GIB},
    {"t", TIB},   {"tb", TIB}, {"ti", TIB},  {"tib", TIB}, {"p", PIB},   {"pb", PIB},  {"pi", PIB},
    {"pib", PIB}, {"e", EIB},  {"eb", EIB},  {"ei", EIB},  {"eib", EIB}, {NULL},
};

static const struct unit duration_units[] = {
    {"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL},
};

static uint64_t unit_factor(const struct unit *units, const char *name)
{
    for (const struct unit *u = units; u->name != NULL; u++) {
        if (strcasecmp(u->name, name) == 0)
            return u->factor;
    }
    return 0;
}

/* ".5" as 5 tenths: at most 18 digits, so that neither number overflows. */
static bool take_fraction(const char **at, uint64_t *numerator, uint64_t *denominator)
{
    *numerator = 0;
    *denominator = 1;
    if (**at != '.')
        return true;
    const char *c = ++*at;
    for (; is_digit(*c) && c - *at < 18; c++) {
        *numerator = *numerator * 10 + (uint64_t)(*c - '0');
        *denominator *= 10;
    }
    bool any = c != *at;
    *at = c;
    return any;
}

static bool take_quantity(const char *text, const struct unit *units, unsigned __int128 *out)
{
    uint64_t whole;
    uint64_t numerator;
    uint64_t denominator;
    const char *at = text;
    if (!take_digits(&at, &whole) || !take_fraction(&at, &numerator, &denominator))
        return false;
    uint64_t factor = unit_factor(units, at);
    if (factor == 0 || (factor == 1 && denominator != 1))
        return false;
    *out = (unsigned __int128)whole * factor;
    *out += (unsigned __int128)numerator * factor / denominator;
    return true;
}

/* number[.fraction][unit], rounded down to a whole number of the smallest unit, which itself
 * takes no fraction.  `what` says in an error what the text should be. */
static int parse_quantity(const char *text, const struct unit *units, const char *what,
                          uint64_t *out, struct error *err)
{
    unsigned __int128 value = 0;
    bool taken = take_quantity(text, units, &value);
    if (!taken && !is_digits(text))
        return error_set(err, E_INVALID, "'%s' is not %s", text, what);
    if (!taken || value > UINT64_MAX)
        return error_set(err, E_INVALID, "'%s' is too large", text);
    *out = (uint64_t)value;
    return 0;
}

int parse_size(const char *text, uint64_t *out_bytes, struct error *err)
{
    return parse_quantity(text, size_units, "a size such as 512, 64KiB or 1.5GiB", out_bytes, err);
}

int parse_duration_ms(const char *text, uint64_t *out_ms, struct error *err)
{
    return parse_quantity(text, duration_units, "a duration such as 250ms, 10s or 2h", out_ms, err);
}

int parse_bool(const char *text, bool *out, struct error *err)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(words[i], text) == 0) {
            *out = i % 2 == 1;
            return 0;
        }
    }
    return error_set(err, E_INVALID, "'%s' is neither true nor false", text);
}

/* The value of a hex digit, or -1. */
static int hex_value(char c)
{
    if (is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The byte of two hex digits, or -1. */
static int hex_byte(const char *two)
{
    int high = hex_value(two[0]);
    int low = high >= 0 ? hex_value(two[1]) : -1;
    return low >= 0 ? high * 16 + low : -1;
}

int64_t parse_url_unescape(const char *text, size_t len, char *out, struct error *err)
{
    size_t used = 0;
    for (size_t at = 0; at < len;) {
        size_t size = text[at] == '%' ? 3 : 1;
        int byte = (unsigned char)text[at];
        if (size == 3)
            byte = len - at >= 3 ? hex_byte(text + at + 1) : -1;
        if (byte < 0)
            return error_set(err, E_INVALID, "bad percent escape at byte %zu", at);
        if (byte == 0)
            return error_set(err, E_INVALID, "NUL at byte %zu", at);
        out[used++] = (char)byte;
        at += size;
    }
    out[used] = '\0';
    return (int64_t)used;
}

const char *format_size(uint64_t bytes, char out[static 16])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int unit = 0;
    unsigned __int128 tenths = (unsigned __int128)bytes * 10;
    /* 1023.95 KiB and more round up to the next unit. */
    for (unsigned __int128 scale = 1; unit < 6 && tenths >= 10240; unit++) {
        scale <<= 10;
        tenths = ((unsigned __int128)bytes * 10 + scale / 2) / scale;
    }
    unsigned value = (unsigned)tenths;
    if (value % 10 == 0 || value >= 1000)
        snprintf(out, 16, "%u %s", (value + 5) / 10, units[unit]);
    else
        snprintf(out, 16, "%u.%u %s", value / 10, value % 10, units[unit]);
    return out;
}

const char *format_duration(uint64_t ms, char out[static 16])
{
    uint64_t s = ms / 1000;
    if (ms < 1000)
        snprintf(out, 16, "%ums", (unsigned)ms);
    else if (s < 60)
        snprintf(out, 16, "%u.%us", (unsigned)s, (unsigned)(ms % 1000 / 100));
    else if (s < 3600)
        snprintf(out, 16, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
    else if (s < 86400)
        snprintf(out, 16, "%uh%02um", (unsigned)(s / 3600), (unsigned)(s / 60 % 60));
    else if (s < 10 * 86400)
        snprintf(out, 16, "%ud%02uh", (unsigned)(s / 86400), (unsigned)(s / 3600 % 24));
    else
        snprintf(out, 16, "%llud", (unsigned long long)(s / 86400));
    return out;
}

void format_hex(const void *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *b = bytes;
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[b[i] >> 4];
        out[2 * i + 1] = digits[b[i] & 15];
    }
    out[2 * len] = '\0';
}

int parse_hex(const char *text, void *bytes, size_t len, struct error *err)
{
    unsigned char *b = bytes;
    if (strlen(text) != 2 * len)
        return error_set(err, E_INVALID, "'%s' does not have %zu hex digits", text, 2 * len);
    for (size_t i = 0; i < len; i++) {
        int byte = hex_byte(text + 2 * i);
        if (byte < 0)
            return error_set(err, E_INVALID, "'%s' is not hexadecimal", text);
        b[i] = (unsigned char)byte;
    }
    return 0;
}
