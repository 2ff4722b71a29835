#include "api/ctl/get_flags.h"

int get_flags_read(const struct ctl *ctl, const struct args *a, struct dfc_get_options *out)
{
    if (a->given[F_length] && a->number[F_length] == 0)
        return ctl_usage(ctl, "--length must be at least 1");
    if (a->number[F_offset] > INT64_MAX)
        return ctl_usage(ctl, "--offset is too large");
    *out = (struct dfc_get_options){
        .offset = (int64_t)a->number[F_offset],
        .length = a->number[F_length],
        .if_match = a->text[F_if_match],
        .no_verify = a->given[F_no_checksum],
    };
    return EXIT_OK;
}
