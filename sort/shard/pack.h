/* What formats share whose records are maps from field to bytes (msgpack, TFRecord): a field is the
 * member whose path is the record's key, a dot and the field's name, the field of no name the
 * member that is the key alone.  The key stands in the field PACK_KEY. */
#pragma once

#include <stdint.h>

#include "common/buf.h"
#include "sort/shard/format.h"
#include "sort/shard/inflow.h"
#include "sort/shard/tar_make.h"

#define PACK_KEY "__key__"
#define PACK_MODE 0444 /* of members that are made */

/* --- reading: fields become members ----------------------------------------------------------- */

struct pack_member {
    struct buf key, field; /* texts */
    struct buf path, headers;
};

void pack_member_done(struct pack_member *m);
/* `len` bytes into a text: within what a path may have, without NUL. */
int pack_get_text(struct inflow *f, uint64_t len, struct buf *out, struct error *err);
/* The member of this key and field, whose contents are the next `size` bytes; or this text. */
int pack_put_member(struct pack_member *m, struct inflow *f, uint64_t size, struct sink tar,
                    struct error *err);
int pack_put_text(struct pack_member *m, const struct inflow *f, const char *text, size_t len,
                  struct sink tar, struct error *err);

/* --- writing: a record is collected, then written --------------------------------------------- */

struct pack_record {
    const char *key;
    size_t key_len;
    uint64_t members;
    const struct blob *body; /* what member() made, with the contents */
};

struct pack_ops {
    const char *name; /* of what a record becomes, for messages */
    /* Appends what comes before a member's contents in the body. */
    int (*member)(struct buf *out, const char *field, size_t len, uint64_t size, struct error *err);
    /* A whole record, into the file. */
    int (*record)(const struct pack_record *r, struct sink out, struct error *err);
};

struct pack *pack_new(const struct format_output *out, const struct pack_ops *ops);
uint64_t pack_size(const struct pack_record *r); /* of the body */
int pack_body(const struct pack_record *r, struct sink out, struct error *err);
/* As an encoder's functions (format.h). */
int pack_record(void *encoder, struct error *err);
int pack_write(void *encoder, const void *tar, size_t len, struct error *err);
int pack_finish(void *encoder, struct error *err);
void pack_free(void *encoder);
