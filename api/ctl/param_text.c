#include "api/ctl/param_text.h"

#include <stdint.h>
#include <string.h>

#include "common/mem.h"

struct unit {
    uint64_t of;
    const char *name;
};

/* The greatest unit that the number is a whole multiple of. */
static char *in_units(const struct unit *units, uint64_t number)
{
    while (units->of > 1 && (number == 0 || number % units->of != 0))
        units++;
    return xprintf("%llu%s", (unsigned long long)(number / units->of), units->name);
}

static const struct unit size_units[] = {
    {(uint64_t)1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, ""}};
static const struct unit time_units[] = {
    {86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};

char *param_text(const char *type, json_t *value)
{
    uint64_t number = (uint64_t)json_integer_value(value);
    if (json_is_string(value))
        return xstrdup(json_string_value(value));
    if (!json_is_integer(value))
        return json_dumps(value, JSON_ENCODE_ANY);
    if (strcmp(type, "size") == 0)
        return in_units(size_units, number);
    if (strcmp(type, "duration") == 0)
        return in_units(time_units, number);
    return xprintf("%llu%s", (unsigned long long)number, strcmp(type, "percent") == 0 ? "%" : "");
}
