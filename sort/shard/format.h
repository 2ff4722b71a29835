/* Shard formats.  The sort itself knows one: tar.  A format is how a file becomes a tar and how a
 * tar becomes a file; each is one `const struct shard_format_ops` in a file of its own, format_*.c,
 * and a row of the table in format.c.
 *
 *     shard ── decode() ──▶ a whole tar, in memory or a work file ── tar_scan, gather ──▶ records
 *     records, as in a tar ── record(), write(), finish() ──▶ output shard
 *
 * A tar has neither: it is read where it lies and written as it comes.  Some formats are inputs
 * alone (read_only).  Sizes of records are those in a tar whatever the format, so that the same
 * records make the same shards in every format.
 *
 * A decoder trusts nothing: what is wrong is E_SHARD_CORRUPT, what is right but not understood
 * E_SHARD_UNSUPPORTED; both name the shard and the byte.  How large a shard may become is the
 * sink's concern (contents.h).  Members of a record stand together in what an encoder gets; what
 * its format cannot hold is E_SHARD_UNSUPPORTED naming the member. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "sort/archive/unarchiver_formats.h"
#include "sort/base/codec.h"
#include "sort/base/env.h"
#include "sort/spec/order.h"
#include "sort/spec/spec.h"

/* The memory that a shard may ask for to be decompressed with: a zstd window. */
#define FORMAT_WINDOW_DEFAULT ((uint64_t)8 << 20) /* zstd's levels up to 19 ask for no more */
#define FORMAT_WINDOW_ALONE ((uint64_t)128 << 20) /* `zstd -d` takes so much; for dfcctl */
#define FORMAT_FORMATS_ALONE (UNARCHIVER_FORMATS | UNARCHIVER_7ZIP) /* for dfcctl */

struct format_input {
    int fd;
    uint64_t size;
    const char *shard;   /* for messages */
    uint64_t window_max; /* bytes; 0: FORMAT_WINDOW_DEFAULT */
    unsigned formats;    /* of enum unarchiver_format: those that libarchive may read */
    /* Asked before each read of the file: other than 0 ends the decoding. */
    int (*check)(void *ctx, struct error *err);
    void *check_ctx;
};

struct format_output {
    struct sink sink;
    const struct sort_env *env; /* work files */
    enum sort_key_rule rule;
};

struct shard_format_ops {
    const char *extensions[3]; /* NULL-terminated */
    const char *content_type;
    /* The whole shard as a tar, end mark included.  NULL: it is one. */
    int (*decode)(const struct format_input *in, struct sink tar, struct error *err);
    /* An output shard.  encoder_new NULL: the tar is the file. */
    int (*encoder_new)(const struct format_output *out, void **encoder, struct error *err);
    int (*record)(void *encoder, struct error *err); /* one begins; may be NULL */
    int (*write)(void *encoder, const void *tar, size_t len, struct error *err);
    int (*finish)(void *encoder, struct error *err); /* everything is in the sink */
    void (*encoder_free)(void *encoder);
    bool read_only;      /* an input alone: no encoder, and no output has the extension */
    bool may_be_empty;   /* a file of no bytes is a shard without records */
    bool keeps_end_mark; /* the tar's end mark is written, too */
};

/* Bytes of a tar that follow the records of an output shard. */
static inline uint64_t format_tar_end(const struct shard_format_ops *f)
{
    return f->keeps_end_mark ? SORT_TAR_END : 0;
}

/* decode(), of a format that has it.  A file of no bytes is damaged where the format writes at
 * least a head: that is what a copy that broke off at once leaves. */
int format_decode(const struct shard_format_ops *f, const struct format_input *in, struct sink tar,
                  struct error *err);
/* The format whose extension this is, or NULL. */
const struct shard_format_ops *format_of_extension(const char *extension);
/* The longest known extension that a name ends with, or NULL. */
const char *format_extension_of(const char *name);
/* The extension of an archive that is none of these formats (".rar"), or NULL. */
const char *format_foreign_extension_of(const char *name);
/* ".tar, .tar.gz, …", for messages: of inputs, and of outputs. */
const char *format_extensions(void);
const char *format_output_extensions(void);
