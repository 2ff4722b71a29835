/* One key whose value is a number, as tests of engines use it. */
#pragma once

#include <stdint.h>

#include "mount/meta/meta.h"

static const struct meta_key one = {.kind = META_ATTR, .id = 1};

struct meta *open_url(const char *url); /* made where there is none; the test fails otherwise */

int commit_step(struct meta *m, const struct meta_step *s);
int read_field(struct meta *m, struct meta_key key, int64_t *number); /* -1: absent */
int64_t field_of(struct meta *m, struct meta_key key);
int put_field(struct meta *m, struct meta_key key, int64_t number);
int add_field(struct meta *m, struct meta_key key, int64_t number);
