/* What SortDataset needs of the world: shards to read, peers to talk to, a place to write.
 *
 * sort/ knows no daemon.  A target fills this table with its mountpaths and HTTP; the tests with
 * directories and pipes, several targets in one process.  Every function may block; they are called
 * from the task's own threads, several at once.  `ctx` comes first everywhere.  Targets are
 * numbered 0..n-1: their place in the job's list of participants, the same everywhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/checksum.h"
#include "common/error.h"
#include "io/bpipe.h"

struct sort_spec;

/* One input shard that this target owns.  Texts live until the callback returns. */
struct sort_shard_info {
    const char *name;
    uint64_t place; /* in the request: index in the template or list; 0 with a prefix */
    uint64_t size;
    bool missing; /* it should be here and is not (templates and lists) */
    /* How many targets the job went on without when it became this target's; 0: it was from the
     * beginning. */
    unsigned without;
    /* Of an input that is no archive (spec->plain_objects): when it was written, and what its bytes
     * must have; of type none: not known. */
    int64_t modified_s;
    struct checksum_value checksum;
};

/* What the pinned inputs are. */
struct sort_pinned {
    /* The sum over all targets is the same as long as they are the same versions of the same
     * shards, whoever has pinned them. */
    uint64_t stamp;
    bool again; /* they were pinned before: by an earlier life of this target */
};

enum sort_channel {
    SORT_CHANNEL_MERGE,  /* a sorted table, to the next target of the arrangement */
    SORT_CHANNEL_ORDERS, /* the output shards that a target shall build */
};

struct sort_digest {
    uint64_t low, high;
};

#define SORT_SIZE_UNKNOWN UINT64_MAX /* of an output shard that is compressed */

struct sort_output; /* an output shard being written: the env's own */

struct sort_env {
    void *ctx;

    /* --- input ------------------------------------------------------------------------------ */
    /* Pins this target's input shards (their versions can no longer change under the job) and
     * calls each() for every one of them, and for missing ones, in any order.  each() returns 0 or
     * a code that ends the listing.  What was pinned before stays what it was; what comes besides
     * when the job goes on without a target is among them. */
    int (*pin_shards)(void *ctx, const struct sort_spec *spec,
                      int (*each)(void *arg, const struct sort_shard_info *info, struct error *err),
                      void *arg, struct sort_pinned *pinned, struct error *err);
    /* The pinned version, for pread.  The caller closes it. */
    int (*open_shard)(void *ctx, const char *name, int *fd, struct error *err);
    /* Gives the bytes of the request's external key map (spec->ekm_file) to feed(), in order, in
     * pieces of any size; feed() returns 0 or a code that ends the reading. */
    int (*read_key_map)(void *ctx, const struct sort_spec *spec,
                        int (*feed)(void *arg, const void *data, size_t len, struct error *err),
                        void *arg, struct error *err);
    /* A file for intermediate data, open for reading and writing, already unlinked. */
    int (*open_work_file)(void *ctx, int *fd, struct error *err);
    /* Room in such a file for its bytes from..to, before they are written: E_NO_SPACE.  NULL: the
     * disk says when it is full. */
    int (*claim_work)(void *ctx, int fd, uint64_t from, uint64_t to, struct error *err);

    /* --- peers ------------------------------------------------------------------------------ */
    /* What people call participant `number`: "t3". */
    const char *(*target_name)(void *ctx, unsigned number);
    /* Begins a stream to peer `to`: what is written into *pipe goes there.  After
     * bpipe_finish(), send_end() waits for the peer's word that it has it all.  One call of
     * send_end() for each success of send_begin(), also after errors. */
    int (*send_begin)(void *ctx, unsigned to, enum sort_channel channel, struct bpipe **pipe,
                      void **handle, struct error *err);
    int (*send_end)(void *ctx, void *handle, struct error *err);
    /* Asks peer `from` for records (a request made by sort/task/records.h): their bytes, in that
     * order, come out of *pipe. The caller unrefs (after bpipe_cancel where it leaves early). */
    int (*fetch_records)(void *ctx, unsigned from, const void *request, size_t len,
                         struct bpipe **pipe, struct error *err);

    /* --- output ----------------------------------------------------------------------------- */
    /* The participant that HRW makes the owner of output object `name`. */
    unsigned (*owner)(void *ctx, const char *name);
    /* E_OBJECT_EXISTS where this target (the owner) has an object of that name already. */
    int (*output_check)(void *ctx, const char *name, struct error *err);
    /* A new output shard of exactly `size` bytes (SORT_SIZE_UNKNOWN: as many as are written),
     * hidden until the job commits.  Not visible before output_finish() (durable, by the bucket's
     * rule); output_discard() takes it back. */
    int (*output_begin)(void *ctx, const char *name, uint64_t size, struct sort_output **out,
                        struct error *err);
    int (*output_write)(void *ctx, struct sort_output *out, const void *data, size_t len,
                        struct error *err);
    int (*output_finish)(void *ctx, struct sort_output *out, struct error *err); /* frees */
    void (*output_discard)(void *ctx, struct sort_output *out);                  /* frees */
    /* For a later life of this target: the output of that name is finished, and is what this order
     * (a digest) says.  Both may be NULL: there is no such life. */
    int (*output_remember)(void *ctx, const char *name, const struct sort_digest *order,
                           struct error *err);
    /* Gives the orders of those outputs of an earlier life that stand as they were remembered. */
    int (*outputs_remembered)(void *ctx, void (*each)(void *arg, const struct sort_digest *order),
                              void *arg, struct error *err);
    /* Is a finished output of an earlier attempt still what it was?  NULL: each is.  Waits. */
    bool (*output_stands)(void *ctx, const char *name);
    /* Removes those of this target's finished outputs of the job, of whichever attempt, that
     * wanted() does not want. */
    int (*outputs_prune)(void *ctx, bool (*wanted)(void *arg, const char *name), void *arg,
                         struct error *err);
};
