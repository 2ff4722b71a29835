#include "proxy/primary/params.h"

const struct param_row proxy_param_rows[] = {
#define PARAM(kind, field, standard, least, most, text) \
    {                                                   \
        .name = #field,                                 \
        .type = PARAM_##kind,                           \
        .offset = offsetof(struct proxy_params, field), \
        .default_text = (standard),                     \
        .min_text = (least),                            \
        .max_text = (most),                             \
        .help = (text),                                 \
    },
#include "proxy/primary/params.def"
#undef PARAM
    {.name = NULL},
};

const char *const proxy_params_live[] = {
    "cache_away",      "cache_settle",
    "lists_max",       "owner_wait",
    "primary_wait",    "read_spread",
    "relays_max",      "s3_complete_ping",
    "s3_forwards_max", "settle_timeout",
    "summary_turn",    "token_ttl",
    "url_ttl_max",     NULL,
};
