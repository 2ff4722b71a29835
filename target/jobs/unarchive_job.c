/* The job `unarchive` (xaction/objects_spec.h): the files of archives become objects.  Each archive
 * is read by the target that owns it, and its members go to the owners of their names, some beside
 * each other.
 *
 *     archive ─▶ checksum ─▶ table of members ─▶ member ─▶ temporary file ─▶ its owner
 *
 * The whole archive has the checksum that it was stored with before a member is made of it.  Of
 * members with one name the last counts, as when it is extracted.  What is there and was written
 * since the job began stays: if it has other bytes, the member has failed.  What has the same bytes
 * is passed over, so that the job may begin again. */
#include <string.h>

#include "common/mem.h"
#include "io/pool.h"
#include "target/archive/archive_source.h"
#include "target/archive/member_unpack.h"
#include "target/cold/names.h"
#include "target/format/ec_manifest.h"
#include "target/jobs/job_send.h"
#include "target/jobs/job_source.h"
#include "target/jobs/objects_walk.h"

enum { PIECE_BYTES = 256 << 10, WIDTH_MAX = 64 };

/* A member on its way. */
struct member {
    char *member, *name; /* in the archive, and of the object */
    struct object_put *put;
    uint64_t size;
};

/* One archive. */
struct unarchiving {
    struct job_base *job;
    const char *archive; /* its name */
    struct archive_source source;
    struct member_table *table;
    uint64_t table_max; /* bytes */
    char *piece;
    struct member members[WIDTH_MAX]; /* that are whole here */
    size_t count, width;
};

/* --- members are sent ------------------------------------------------------------------------- */

static void fail(struct unarchiving *u, const char *member, const struct error *err)
{
    _cleanup_free_ char *both = xprintf("%s/%s", u->archive, member);
    job_tally_fail(u->job->tally, both, err);
}

static void count(struct unarchiving *u, const struct member *m, struct error *err)
{
    switch (err->code) {
    case 0:
        job_tally_done(u->job->tally, m->size);
        break;
    case E_NOT_MODIFIED:
        job_tally_skipped(u->job->tally);
        break;
    case E_ABORTED:
        break;
    case E_PRECONDITION:
        error_set(err, E_PRECONDITION,
                  "'%s' has other bytes, from a client or another member, since the job began",
                  m->name);
        fail(u, m->member, err);
        break;
    default:
        fail(u, m->member, err);
    }
}

static int send_nth(void *ctx, size_t i, struct error *err)
{
    struct unarchiving *u = ctx;
    struct job_base *j = u->job;
    struct member *m = &u->members[i];
    struct error why = ERROR_INIT;
    const struct object_copy copy = {.bucket_id = j->plan.output_bucket_id,
                                     .name = m->name,
                                     .has_rule = true,
                                     .term = j->plan.term,
                                     .version = j->plan.version,
                                     .is_new = true};
    (void)job_send(j, steal(m->put), &copy, &why); /* what it said is in why */
    count(u, m, &why);
    return job_base_check(j, err);
}

static void drop_members(struct unarchiving *u)
{
    for (size_t i = 0; i < u->count; i++) {
        object_put_abort(u->members[i].put);
        free(u->members[i].member);
        free(u->members[i].name);
    }
    u->count = 0;
}

static int send_all(struct unarchiving *u, struct error *err)
{
    int code = parallel_for("unarchive", (unsigned)u->width, u->count, send_nth, u, err);
    drop_members(u);
    if (code == 0 && job_tally_hopeless(u->job->tally))
        code = job_tally_end(u->job->tally, err);
    return code;
}

/* --- members are read ------------------------------------------------------------------------- */

/* "tar -C d ." writes "./a". */
static const char *below(const char *path)
{
    while (strncmp(path, "./", 2) == 0)
        path += 2;
    return path;
}

static char *name_of(const struct unarchiving *u, const char *path)
{
    const struct objects_spec *spec = u->job->spec;
    if (spec->bare_members)
        return xprintf("%s%s", spec->prepend, below(path));
    return xprintf("%s%s/%s", spec->prepend, u->archive, below(path));
}

static int read_into(struct unarchiving *u, struct unarchiver *archive, struct member *m,
                     struct error *err)
{
    ssize_t n = 0;
    int code = 0;
    while (code == 0 && (n = unarchiver_read(archive, u->piece, PIECE_BYTES, err)) > 0) {
        code = object_put_write(m->put, u->piece, (size_t)n, err);
        if (code == 0)
            code = job_base_check(u->job, err);
        m->size += (uint64_t)n;
    }
    return code != 0 ? code : (int)n;
}

/* What is wrong with the archive ends it; what is wrong with the member is counted. */
static int spool(struct unarchiving *u, struct unarchiver *archive, const char *path, uint64_t size,
                 struct error *err)
{
    struct error why = ERROR_INIT;
    struct member *m = &u->members[u->count];
    *m = (struct member){.member = xstrdup(path), .name = name_of(u, path)};
    u->count++;
    if (object_name_check(m->name, strlen(m->name), &why) == 0 &&
        job_send_begin(u->job, u->job->plan.output_bucket_id, m->name, size, &m->put, &why) == 0)
        return read_into(u, archive, m, err);
    fail(u, path, &why);
    u->count--;
    free(m->member);
    free(m->name);
    return 0;
}

static bool is_last(const struct unarchiving *u, const char *path, uint64_t turn)
{
    struct member_place place;
    return member_table_find(u->table, path, strlen(path), &place) && place.offset == turn;
}

static int take_member(void *ctx, struct unarchiver *archive, const struct unarchiver_member *m,
                       uint64_t turn, struct error *err)
{
    struct unarchiving *u = ctx;
    const enum member_kind kind = member_unpack_kind(m);
    struct error why = ERROR_INIT;
    if (kind == MEMBER_DIRECTORY || !is_last(u, m->path, turn))
        return 0;
    if (kind != MEMBER_FILE) {
        error_set(&why, E_MEMBER_UNREADABLE, "it is a %s: only files become objects",
                  member_kind_name(kind));
        fail(u, m->path, &why);
        return 0;
    }
    int code = spool(u, archive, m->path, m->size_known ? m->size : OBJECT_SIZE_UNKNOWN, err);
    return code == 0 && u->count == u->width ? send_all(u, err) : code;
}

/* --- an archive ------------------------------------------------------------------------------- */

static int go_on(void *ctx, struct error *err)
{
    const struct unarchiving *u = ctx;
    if (member_table_bytes(u->table) > u->table_max)
        return error_set(err, E_TOO_LARGE,
                         "the names of its members take more than %llu bytes (shard_index_memory)",
                         (unsigned long long)u->table_max);
    return job_base_check(u->job, err);
}

/* How many objects come of it. */
static uint64_t expected(const struct member_table *t)
{
    uint64_t n = 0;
    for (size_t i = 0; i < member_table_count(t); i++) {
        struct member_place place;
        member_table_at(t, i, &place);
        n += place.kind != MEMBER_DIRECTORY;
    }
    return n;
}

static int unpack_all(struct unarchiving *u, struct error *err)
{
    int code = member_unpack_scan(&u->source, u->table, err);
    if (code != 0)
        return code;
    member_table_finish(u->table);
    job_tally_expect(u->job->tally, expected(u->table));
    code = member_unpack_each(&u->source, take_member, u, err);
    return code == 0 ? send_all(u, err) : code;
}

static int unpack(void *ctx, const struct object *o, struct error *err)
{
    struct unarchiving *u = ctx;
    struct object shown;
    int code = job_source_verify(u->job, o, err);
    object_clone(o, &shown);
    shown.fd = o->fd;
    if (code == 0)
        code = ec_manifest_show(&shown.attr, err);
    if (code != 0)
        return code;
    u->table = member_table_new();
    u->source = (struct archive_source){.target = u->job->target,
                                        .bucket_id = u->job->plan.input_bucket_id,
                                        .object = &shown,
                                        .go_on = go_on,
                                        .ctx = u};
    code = archive_source_open(&u->source, err);
    if (code == 0)
        code = unpack_all(u, err);
    archive_source_close(&u->source);
    drop_members(u);
    member_table_free(steal(u->table));
    return code;
}

static void count_archive(struct job_base *j, const char *name, const struct error *err)
{
    switch (err->code) {
    case 0:
        job_tally_done(j->tally, 0);
        break;
    case E_ABORTED:
        break;
    case E_PRECONDITION: /* the job has made it itself, or a client since */
        job_tally_skipped(j->tally);
        break;
    case E_OBJECT_NOT_FOUND:
        job_tally_missed(j->tally, name, "it does not exist");
        break;
    default:
        job_tally_fail(j->tally, name, err);
    }
}

static void unpack_one(void *ctx, const char *name)
{
    struct job_base *j = ctx;
    struct unarchiving *u = xcalloc(1, sizeof *u);
    struct error err = ERROR_INIT;
    uint64_t width = param_live(j->target->params.copy_parallel);
    *u = (struct unarchiving){.job = j,
                              .archive = name,
                              .table_max = j->target->params.shard_index_memory,
                              .piece = xmalloc(PIECE_BYTES),
                              .width = width < WIDTH_MAX ? (size_t)width : WIDTH_MAX};
    (void)job_source_work(j, name, unpack, u, &err); /* what it said is in err */
    count_archive(j, name, &err);
    free(u->piece);
    free(u);
}

static int unpack_batch(void *ctx, const char *const *names, size_t n, struct error *err)
{
    return objects_walk_batch(ctx, 1, names, n, unpack_one, ctx, err);
}

static int run(void *self, struct error *err)
{
    struct job_base *j = self;
    if (j->spec->which == OBJECTS_PREFIX && cold_names_can(j->target, j->plan.input_bucket_id))
        return objects_walk_listed(j, false, unpack_batch, j, err);
    return objects_walk(j, unpack_batch, j, err);
}

const struct xaction_ops unarchive_xaction =
    JOB_WORK("unarchive", .size = sizeof(struct job_base), .done_word = "extracted",
             .over_objects = true, .sends = true, .run = run);
