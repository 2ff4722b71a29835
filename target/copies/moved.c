/* The row of objects that move: another owner sends one with its version, time and checksum
 * (rebalance.h, compare.h, hidden.h), perhaps without its bytes (hollow.h).  What is here stays if
 * it is as new. */
#include "target/node/write_path.h"

#include "common/clock.h"
#include "common/parse.h"
#include "target/node/call.h"
#include "target/node/target.h"
#include "target/copies/copies.h"
#include "target/copies/hidden.h"
#include "target/copies/hollow.h"
#include "target/copies/object_copy.h"
#include "target/copies/dirty.h"

static bool takes_moved(const struct object_call *call)
{
    return call->put.kind == PUT_MOVE || call->put.kind == PUT_HOLLOW;
}

static int parse_hollow(const struct object_call *call, struct object_moved *moved,
                        struct error *err)
{
    const char *size = http_header(call->req, HOLLOW_HEADER);
    if (call->put.kind != PUT_HOLLOW)
        return 0;
    int code = size != NULL ? parse_u64(size, &moved->hollow, err) : 0;
    if (code == 0 && moved->hollow == 0)
        return error_set(err, E_INVALID, "without bytes it has the header " HOLLOW_HEADER);
    if (code == 0 && (moved->tombstone || http_content_length(call->req) > 0))
        return error_set(err, E_INVALID, "with " HOLLOW_HEADER " no bytes come, and no tombstone");
    return code;
}

static int parse_move(const struct object_call *call, struct object_moved *moved, struct error *err)
{
    const char *version = http_header(call->req, "Dfc-Version");
    const char *modified = http_header(call->req, OBJECT_MODIFIED_HEADER);
    uint64_t modified_ms = 0;
    if (version == NULL || modified == NULL)
        return error_set(err, E_INVALID,
                         "an object that is moved has Dfc-Version and " OBJECT_MODIFIED_HEADER);
    int code = version_parse(version, &moved->version, err);
    if (code == 0)
        code = parse_u64(modified, &modified_ms, err);
    moved->modified_ms = (int64_t)(modified_ms & INT64_MAX);
    moved->tombstone = http_header(call->req, OBJECT_TOMBSTONE_HEADER) != NULL;
    moved->pending = http_header(call->req, OBJECT_PENDING_HEADER) != NULL;
    moved->ranks = call->bucket->props.backend == NULL; /* with one pairs come with uploads */
    if (code == 0)
        code = parse_hollow(call, moved, err);
    return code != 0 ? error_recode(err, E_INVALID, OBJECT_COPY_HEADER) : 0;
}

/* What was the newest of all when it was sent need not be if it comes late: others may have owned
 * and written the name meanwhile, and have been forgotten (cluster/documents/layout.h). */
static int check_move(void *ctx, const struct attr *current, struct error *err)
{
    const struct object_call *call = ctx;
    (void)current;
    return sender_knows_owners(call->req, err);
}

/* Before anybody can see it the name is marked: who sends it may die before all have it.  Not where
 * its bytes do not come, for nothing is answered from that. */
static int open_moved(struct object_call *call, struct object_put_spec *spec,
                      struct write_parts *out, struct error *err)
{
    struct object_moved moved = {.tombstone = false};
    int code = parse_move(call, &moved, err);
    if (code != 0)
        return code;
    spec->durability = DURABILITY_SYNC;
    spec->checksum = spec->expect != NULL ? spec->expect->type : CHECKSUM_NONE;
    spec->moved = &moved;
    if (spec->size == OBJECT_SIZE_UNKNOWN) /* an empty body need not say so */
        spec->size = 0;
    spec->job_id = http_header(call->req, HIDDEN_JOB_HEADER);
    spec->condition = spec->job_id != NULL
                          ? (struct object_condition){.check = hidden_check, .ctx = call->req}
                          : (struct object_condition){.check = check_move, .ctx = call};
    code = write_open_here(call, spec, out, err);
    if (code == 0 && bucket_has_copies(call->bucket) && moved.hollow == 0 && spec->job_id == NULL)
        dirty_mark(call->target->copies->dirty, call->bucket->id, call->name, &moved.version,
                   clock_ms());
    return code;
}

/* The sender has asked earlier owners itself. */
const struct write_path moved_path = {.name = "moved",
                                      .sees_to_owners = true,
                                      .takes = takes_moved,
                                      .open = open_moved,
                                      .commit = write_commit_here};
