/* One try to put members into an archive: the newest version of it is opened here, and the next one
 * is made of it, on the condition that nobody has written it meanwhile.
 *
 *   bucket         the newest version             the next one
 *   one copy       this target's file             a PUT of this target's store; bytes of the old
 *                                                 file are shared with it, or copied by the file
 *                                                 system (store/put_bytes.c)
 *   all others     what a GET at the owner        a PUT at the leader of the name, as of any client
 *                  says is the newest, in the
 *                  file or the slices here
 *
 * All bytes of the old version are read: one that lacks its checksum is refused, and no part of it
 * becomes a new archive with a checksum that is right.
 *
 * All of this waits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "target/store/object.h"

struct job_stop;
struct object_call;

struct append {
    struct object_call *call; /* until it is replied to; nobody else replies */
    struct target *target;
    struct job_stop *stop;
    const char *member; /* NULL: the body is a tar; the request's, and so gone with it */
    bool overwrite;
    bool creates; /* an archive that does not exist */
    int fd;       /* the body */
    uint64_t size;
    char *request_id;
};

/* 0: the client has been answered.  *raced: the archive was written meanwhile, and it can be tried
 * again (E_PRECONDITION). */
int append_try(struct append *a, bool *raced, struct error *err);
