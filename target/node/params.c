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
    "keepalive_interval", /* of one target alone: keepalive_timeout is each proxy's */
#define PARAM(type, name, standard, least, most, help) #name,
#include "cluster/documents/target_settings.def"
#undef PARAM
    NULL,
};
