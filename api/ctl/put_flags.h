/* The flags of put, as the library takes them.  sync has --part-size, too. */
#pragma once

#include "api/ctl/ctl.h"

struct put_flags {
    struct dfc_put_options options;
    uint64_t part_size; /* larger files are sent in parts; 0: none is */
    struct dfc_meta *meta;
    char **names; /* of the metadata: owned */
};

/* --part-size, or what holds without it: an exit code. */
int part_size_of(const struct ctl *ctl, const struct args *a, uint64_t *size);
/* An exit code; put_flags_done() in any case. */
int put_flags_read(const struct ctl *ctl, const struct args *a, struct put_flags *f);
void put_flags_done(struct put_flags *f);
