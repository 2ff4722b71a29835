/* Which objects images refer to, with their sizes. */
#pragma once

#include "vdisc/client/image.h"

struct references_row {
    char *name; /* BUCKET/KEY */
    uint64_t size;
};

struct references {
    struct references_row *rows;
    size_t count, room;
};

/* Every object of an open image, its header too. */
int references_take(struct references *r, const struct vdisc *v, struct dfc_error *err);
void references_unite(struct references *r); /* sorted by name; each once */
bool references_have(const struct references *r, const char *bucket, const char *key); /* united */
uint64_t references_bytes(const struct references *r);
void references_done(struct references *r);
