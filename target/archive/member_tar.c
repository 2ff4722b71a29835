#include "target/archive/member_tar.h"

#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "io/reader.h"
#include "net/http/pipe.h"
#include "sort/shard/member_writer.h"
#include "target/archive/archive_source.h"
#include "target/archive/member_match.h"
#include "target/archive/member_table.h"
#include "target/archive/member_unpack.h"
#include "target/archive/shard_index.h"
#include "target/archive/unpackers.h"
#include "target/node/call.h"
#include "target/node/read_count.h"
#include "target/node/target.h"

enum { PIPE_BYTES = 512 << 10, PIECE_BYTES = 64 << 10, NAMES_A_LOOK = 4096, MODE = 0644 };

struct tar_job {
    struct unpackers *unpackers;
    struct object_call *call; /* until it is replied to */
    struct target *target;
    uint64_t bucket_id;
    struct object object;
    struct reader *reader;
    struct shard *shard;
    struct member_match *match;
    void (*head)(const struct object_call *call, const struct attr *a);
    struct member_place *chosen; /* in the archive's order; names are the index's */
    size_t count, room;
    struct bpipe *pipe;
    struct member_writer *writer;
    char *piece;
    bool replied;
    char *request_id; /* the request may end before its bytes are given */
};

static void job_free(struct tar_job *j)
{
    close(j->object.fd);
    reader_unref(j->reader);
    shard_unref(j->shard);
    member_match_free(j->match);
    member_writer_free(j->writer);
    bpipe_unref(j->pipe);
    free(j->chosen);
    free(j->piece);
    free(j->request_id);
    free(j);
}

static int go_on(void *ctx, struct error *err)
{
    struct tar_job *j = ctx;
    if (unpackers_are_stopping(j->unpackers))
        return error_set(err, E_NOT_READY, "the target stops");
    return bpipe_check(j->pipe, err);
}

/* --- the choice ------------------------------------------------------------------------------- */

static void add(struct tar_job *j, const struct member_place *m)
{
    if (j->count == j->room) {
        j->room = j->room == 0 ? 64 : 2 * j->room;
        j->chosen = xrealloc(j->chosen, j->room * sizeof *j->chosen);
    }
    j->chosen[j->count++] = *m;
}

static int compare_places(const void *a, const void *b)
{
    const struct member_place *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int choose(struct tar_job *j, struct error *err)
{
    const struct member_table *t = shard_members(j->shard);
    int rc = 0;
    for (size_t i = 0; i < member_table_count(t) && rc >= 0; i++) {
        struct member_place m;
        member_table_at(t, i, &m);
        if (i % NAMES_A_LOOK == 0 && (rc = go_on(j, err)) != 0)
            return rc;
        rc = m.kind == MEMBER_FILE ? member_match(j->match, m.name, m.name_len, err) : 0;
        if (rc > 0)
            add(j, &m);
    }
    if (rc < 0)
        return rc;
    if (j->count == 0)
        return error_set(err, E_MEMBER_NOT_FOUND, "archive '%s/%s' has no such member",
                         j->call->bucket->name, j->call->name);
    qsort(j->chosen, j->count, sizeof *j->chosen, compare_places);
    return 0;
}

static uint64_t bytes_of(const struct tar_job *j)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < j->count; i++)
        bytes += j->chosen[i].size < UINT64_MAX - bytes ? j->chosen[i].size : UINT64_MAX - bytes;
    return bytes;
}

/* Of each member: what all have together is counted as they are unpacked. */
static int check_sizes(const struct tar_job *j, struct error *err)
{
    int code = 0;
    if (!member_table_packed(shard_members(j->shard)))
        return 0;
    for (size_t i = 0; i < j->count && code == 0; i++)
        code = member_unpack_check_size(j->object.attr.size, j->chosen[i].size, err);
    return code;
}

/* --- the reply -------------------------------------------------------------------------------- */

static int put(void *ctx, const void *data, size_t len, struct error *err)
{
    struct tar_job *j = ctx;
    return bpipe_write(j->pipe, data, len, err);
}

static int begin_reply(struct tar_job *j, struct error *err)
{
    const struct shard_format_ops *format;
    int code = member_writer_format(".tar", "", &format, err);
    if (code != 0 || (code = member_writer_new(format, (struct sink){.write = put, .ctx = j},
                                               &j->writer, err)) != 0)
        return code;
    object_read_count(j->call, bytes_of(j), j->reader);
    j->replied = true;
    j->head(j->call, &j->object.attr);
    http_reply_constant(j->call->req, "Content-Type", format->content_type);
    http_reply_pipe(j->call->req, 200, -1, j->pipe);
    return 0;
}

static int begin_member(void *ctx, size_t i, struct error *err)
{
    struct tar_job *j = ctx;
    const struct member_place *m = &j->chosen[i];
    const struct tar_made made = {.path = m->name,
                                  .path_len = m->name_len,
                                  .type = '0',
                                  .size = m->size,
                                  .mode = MODE,
                                  .mtime = m->mtime_s};
    return member_writer_begin(j->writer, &made, err);
}

static int take(void *ctx, const void *data, size_t len, struct error *err)
{
    struct tar_job *j = ctx;
    return member_writer_data(j->writer, data, len, err);
}

static int put_plain(struct tar_job *j, struct archive_source *s, size_t i, struct error *err)
{
    const struct member_place *m = &j->chosen[i];
    int code = begin_member(j, i, err);
    for (uint64_t at = 0, n; at < m->size && code == 0; at += n) {
        n = m->size - at < PIECE_BYTES ? m->size - at : PIECE_BYTES;
        if ((code = go_on(j, err)) == 0 &&
            (code = archive_source_read(s, j->piece, n, m->offset + at, err)) == 0)
            code = take(j, j->piece, n, err);
    }
    return code;
}

static int put_packed(struct tar_job *j, struct archive_source *s, struct error *err)
{
    _cleanup_free_ struct unpack_part *parts = xcalloc(j->count, sizeof *parts);
    for (size_t i = 0; i < j->count; i++)
        parts[i] = (struct unpack_part){
            .turn = j->chosen[i].offset, .length = j->chosen[i].size, .size = j->chosen[i].size};
    return member_unpack_parts(s, parts, j->count, begin_member, take, j, err);
}

static int put_members(struct tar_job *j, struct archive_source *s, struct error *err)
{
    if (member_table_packed(shard_members(j->shard)))
        return put_packed(j, s, err);
    int code = 0;
    j->piece = xmalloc(PIECE_BYTES);
    for (size_t i = 0; i < j->count && code == 0; i++)
        code = put_plain(j, s, i, err);
    return code;
}

static int put_all(struct tar_job *j, struct error *err)
{
    struct archive_source source = {.target = j->target,
                                    .bucket_id = j->bucket_id,
                                    .object = &j->object,
                                    .reader = j->reader,
                                    .go_on = go_on,
                                    .ctx = j};
    int code = choose(j, err);
    if (code == 0)
        code = check_sizes(j, err);
    if (code != 0)
        return code;
    if ((code = archive_source_open(&source, err)) == 0 && (code = begin_reply(j, err)) == 0 &&
        (code = put_members(j, &source, err)) == 0)
        code = member_writer_finish(j->writer, err);
    archive_source_close(&source);
    return code;
}

static void run(void *arg)
{
    struct tar_job *j = arg;
    struct error err = ERROR_INIT;
    log_set_request(j->request_id);
    (void)put_all(j, &err); /* what it said is in err */
    if (!j->replied) {
        j->head(j->call, &j->object.attr);
        object_call_fail(j->call, "members of", &err);
    } else {
        if (err.code != 0 && err.code != E_CANCELLED)
            log_error("members cut off", lstr("name", j->object.attr.name), lerr(&err));
        bpipe_finish(j->pipe, err.code != 0 ? &err : NULL);
    }
    log_set_request(NULL);
    job_free(j);
}

void member_tar_reply(struct unpackers *u, struct object_call *call, const struct object *o,
                      struct reader *reader, struct shard *shard, struct member_match *match,
                      void (*head)(const struct object_call *call, const struct attr *a))
{
    struct error err = ERROR_INIT;
    struct tar_job *j = xcalloc(1, sizeof *j);
    *j = (struct tar_job){.unpackers = u,
                          .call = call,
                          .target = call->target,
                          .bucket_id = call->bucket->id,
                          .reader = reader_ref(reader),
                          .shard = shard_ref(shard),
                          .match = match,
                          .head = head,
                          .pipe = bpipe_new(PIPE_BYTES),
                          .request_id = xstrdup(http_request_id(call->req))};
    object_clone(o, &j->object);
    j->object.fd = o->fd;
    if (unpackers_submit(u, run, j, &err) == 0)
        return;
    head(call, &j->object.attr);
    object_call_fail(call, "members of", &err);
    job_free(j);
}
