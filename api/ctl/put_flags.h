/* The flags of put, as the library takes them. */
#pragma once

#include "api/ctl/ctl.h"

struct put_flags {
    struct dfc_put_options options;
    struct dfc_meta *meta;
    char **names; /* of the metadata: owned */
};

/* An exit code; put_flags_done() in any case. */
int put_flags_read(const struct ctl *ctl, const struct args *a, struct put_flags *f);
void put_flags_done(struct put_flags *f);
