#include "target/node/params.h"

const struct param_row target_param_rows[] = {
#define PARAM(type_, name_, standard, least, most, help_) \
    {.name = #name_,                                      \
     .type = PARAM_##type_,                               \
     .offset = offsetof(struct target_params, name_),     \
     .default_text = (standard),                          \
     .min_text = (least),                                 \
     .max_text = (most),                                  \
     .help = (help_)},
#include "target/node/params.def"
#undef PARAM
    {.name = NULL},
};

const char *const target_params_live[] = {
    "copy_parallel",    "keepalive_interval", "s3_complete_ping",
    "s3_forwards_max",  "sort_memory",        "sort_key_map_memory",
    "sort_zstd_window", "uploads_max",        NULL,
};
