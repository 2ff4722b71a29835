/* The outline of a record: its members' headers without their contents, as blocks of a tar.
 *
 * Who makes an index of an output shard needs no more; so holders send that.  Both sides walk over
 * the record: from header to header, contents and padding being passed over wherever untar_skip()
 * says so within what is left of the record.
 *
 *     record   [x header][path=…][header][contents, padding][header][contents, padding]
 *     outline  [x header][path=…][header]                   [header] */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "sort/shard/gather.h"
#include "sort/shard/untar.h"

/* The holder's side: one record after the other. */
struct outline {
    struct gather *gather; /* with nothing else in it */
    struct feed feed;
    struct untar untar;
    uint64_t left; /* of the record */
    unsigned char block[TAR_BLOCK];
    size_t used; /* of the block */
};

void outline_init(struct outline *o, struct gather *g);
void outline_done(struct outline *o);
int outline_begin(struct outline *o, uint32_t shard, uint32_t position, struct error *err);
/* 1..max bytes, 0 at the record's end. */
ssize_t outline_read(struct outline *o, void *out, size_t max, struct error *err);
