#include "api/ctl/rate_flags.h"

bool rate_flags_given(const struct args *args)
{
    return args->given[F_requests_rate] || args->given[F_bytes_rate];
}

json_t *rate_flags_read(const struct args *args, const json_t *before)
{
    static const struct {
        const char *field;
        enum flag_id flag;
    } parts[] = {{"requests", F_requests_rate}, {"bytes", F_bytes_rate}};
    json_t *rate = json_object();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        json_t *old = json_object_get(before, parts[i].field);
        if (args->given[parts[i].flag])
            json_object_set_new(rate, parts[i].field,
                                json_integer((json_int_t)args->number[parts[i].flag]));
        else if (old != NULL)
            json_object_set(rate, parts[i].field, old);
    }
    return rate;
}
