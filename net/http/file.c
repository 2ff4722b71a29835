/* Files as replies: what is in memory goes out from where it is, what is not is fetched first by
 * the readers of its disk.
 *
 *   small    read at once ─────────────────────────────────▶ REPLY_DATA
 *               └ not all in memory ─▶ load() in a reader ──▶ REPLY_DATA, or an error reply
 *   large    the first piece is in memory ─────────────────▶ REPLY_FILE
 *               └ it is not ─────────▶ load() in a reader ──▶ REPLY_FILE, or an error reply
 *            each further piece, before it is sent (request_file_ready):
 *               └ not in memory ─────▶ fetch() in a reader; the connection sleeps meanwhile
 *
 * A piece that was fetched is sent without another look, so that a machine short of memory gets on,
 * too.  The kernel begins with the next one while this one is sent (reader_fetch). */
#include "net/http/request.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "io/file.h"
#include "io/reader.h"
#include "net/http/server_state.h"

enum { SENDFILE_BYTES = 2 * 1024 * 1024 };

/* --- the beginning ---------------------------------------------------------------------------- */

static bool file_is_small(const struct http_request *req)
{
    return req->reply.length <= SERVER_SMALL_FILE_MAX && req->method != HTTP_HEAD;
}

static void publish_data(struct http_request *req, char *data)
{
    req->reply.kind = REPLY_DATA;
    req->reply.data = data;
    request_publish(req);
}

static void publish_file(struct http_request *req)
{
    req->reply.kind = REPLY_FILE;
    request_publish(req);
}

/* A file that is too short would be noticed in the middle of the reply. */
static int check_size(const struct reply *r, struct error *err)
{
    struct stat st;
    uint64_t end = r->offset + (uint64_t)r->length;
    if (fstat(r->fd, &st) != 0)
        return error_errno(err, errno, "look at a file");
    if ((uint64_t)st.st_size < end)
        return error_set(err, E_CORRUPT, "the file has %lld bytes, it should have %llu",
                         (long long)st.st_size, (unsigned long long)end);
    return 0;
}

static int read_small(const struct reply *r, char *data, struct error *err)
{
    size_t length = (size_t)r->length;
    int rc = r->reader != NULL ? reader_pread(r->reader, r->fd, data, length, r->offset, err)
                               : file_pread_full(r->fd, data, length, r->offset, err);
    return rc == E_LENGTH ? error_recode(err, E_CORRUPT, "reply") : rc;
}

static void reply_small(struct http_request *req)
{
    struct error err = ERROR_INIT;
    char *data = xmalloc((size_t)req->reply.length + 1);
    if (read_small(&req->reply, data, &err) == 0) {
        publish_data(req, data);
        return;
    }
    free(data);
    reply_error_instead(req, &err);
}

static size_t piece_at(const struct reply *r, uint64_t at)
{
    uint64_t left = (uint64_t)r->length - at;
    return left < READER_PIECE_BYTES ? (size_t)left : READER_PIECE_BYTES;
}

static int fetch_piece(struct reply *r, uint64_t at, struct error *err)
{
    size_t len = piece_at(r, at);
    int rc = reader_fetch(r->reader, r->fd, r->offset + at, len, err);
    if (rc == 0)
        r->fetched = at + len;
    return rc == E_LENGTH ? error_recode(err, E_CORRUPT, "reply") : rc;
}

static bool piece_is_here(struct reply *r, uint64_t at)
{
    size_t len = piece_at(r, at);
    if (!reader_has(r->reader, r->fd, r->offset + at, len))
        return false;
    r->fetched = at + len;
    return true;
}

/* In a reader's thread: the reply begins when its first bytes are there. */
static void load(void *arg)
{
    struct http_request *req = arg;
    struct error err = ERROR_INIT;
    if (file_is_small(req))
        reply_small(req);
    else if (fetch_piece(&req->reply, 0, &err) == 0)
        publish_file(req);
    else
        reply_error_instead(req, &err);
}

static void load_elsewhere(struct http_request *req)
{
    struct error err = ERROR_INIT;
    if (reader_may_wait())
        load(req);
    else if (reader_submit(req->reply.reader, load, req, &err) != 0)
        reply_error_instead(req, &err);
}

static void reply_small_now(struct http_request *req)
{
    struct reply *r = &req->reply;
    size_t length = (size_t)r->length;
    char *data = xmalloc(length + 1);
    if (reader_pread_now(r->reader, r->fd, data, length, r->offset) == length) {
        publish_data(req, data);
        return;
    }
    free(data);
    load_elsewhere(req);
}

static void reply_unchecked(struct http_request *req)
{
    if (file_is_small(req))
        reply_small_now(req);
    else if (req->method == HTTP_HEAD || piece_is_here(&req->reply, 0))
        publish_file(req);
    else
        load_elsewhere(req);
}

static void reply_checked(struct http_request *req)
{
    struct error err = ERROR_INIT;
    if (file_is_small(req))
        reply_small(req);
    else if (check_size(&req->reply, &err) == 0)
        publish_file(req);
    else
        reply_error_instead(req, &err);
}

void http_reply_file(struct http_request *req, int status, int fd, uint64_t offset, uint64_t length,
                     struct reader *reader)
{
    struct reply *r = &req->reply;
    r->status = status;
    r->fd = fd;
    r->offset = offset;
    r->length = (int64_t)length;
    r->reader = reader;
    if (reader != NULL)
        reply_unchecked(req);
    else
        reply_checked(req);
}

/* --- the rest of it --------------------------------------------------------------------------- */

static void fetch_ended_locked(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    req->fetches = false;
    request_wake_locked(req);
    pthread_mutex_unlock(&req->lock);
}

/* As with request_publish(), the request may be gone when the lock is. */
static void fetch_ended(struct http_request *req)
{
    struct http_server *server = req->server;
    if (!server_is_draining(server)) {
        fetch_ended_locked(req);
        return;
    }
    server_lock(server);
    fetch_ended_locked(req);
    server_changed_and_unlock(server);
}

/* In a reader's thread. */
static void fetch(void *arg)
{
    struct http_request *req = arg;
    struct error err = ERROR_INIT;
    req->reply.fetch_code = fetch_piece(&req->reply, req->reply.fetched, &err);
    fetch_ended(req);
}

/* The end of the server aborts what waits for clients, and then waits for fetches that are under
 * way: none is begun after it has looked. */
static bool may_fetch(struct http_request *req)
{
    pthread_mutex_lock(&req->lock);
    req->fetches = !req->aborted;
    bool may = req->fetches;
    pthread_mutex_unlock(&req->lock);
    return may;
}

static bool fetch_begin(struct http_request *req)
{
    if (!may_fetch(req))
        return false;
    req->reply.fetching = true;
    if (reader_submit(req->reply.reader, fetch, req, NULL) == 0)
        return true;
    req->reply.fetching = false;
    pthread_mutex_lock(&req->lock);
    req->fetches = false;
    pthread_mutex_unlock(&req->lock);
    return false;
}

/* False: the connection sleeps. */
static bool fetch_has_ended(struct http_request *req)
{
    while (request_is_owed(req)) {
        if (request_sleep(req))
            return false;
    }
    req->reply.fetching = false;
    return true;
}

ssize_t request_file_ready(struct http_request *req, uint64_t at)
{
    struct reply *r = &req->reply;
    uint64_t left = (uint64_t)r->length - at;
    if (r->reader == NULL)
        return left < SENDFILE_BYTES ? (ssize_t)left : SENDFILE_BYTES;
    for (;;) {
        if (r->fetching && !fetch_has_ended(req))
            return 0;
        if (r->fetch_code != 0)
            return HTTP_STREAM_CUT;
        if (at < r->fetched || piece_is_here(r, at))
            return (ssize_t)(r->fetched - at);
        assert(at == r->fetched);
        if (!fetch_begin(req))
            return HTTP_STREAM_CUT;
    }
}
