/* dfc_ring_*: rings of samples (docs/design/ring.md). */
#include "api/dfc_ring.h"

#include "api/call.h"
#include "api/failure.h"
#include "api/uri.h"
#include "common/mem.h"

enum { REPLY_MS = 30000 }; /* for a reply, when its time has come */

static int small(struct dfc_client *c, const char *method, const char *ring, const char *what,
                 char **document, struct dfc_error *err)
{
    const struct call_small how = {.method = method, .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = uri_object_in(&path, "rings", ring, what, err);
    return rc == DFC_OK ? call_small(c, &how, &path, document, err) : rc;
}

int dfc_ring_status(struct dfc_client *c, const char *ring, char **document, struct dfc_error *err)
{
    return small(c, "GET", ring, "status", document, err);
}

int dfc_ring_wait(struct dfc_client *c, const char *ring, uint64_t after, uint32_t wait_ms,
                  char **document, struct dfc_error *err)
{
    char wait[32];
    _cleanup_(call_done)
    struct call call = {
        .method = "GET", .twice_is_harmless = true, .idle_timeout_ms = wait_ms + REPLY_MS};
    int rc = uri_object_in(&call.path, "rings", ring, "status", err);
    if (rc != DFC_OK)
        return rc;
    snprintf(wait, sizeof wait, "%lums", (unsigned long)wait_ms);
    uri_query_u64(&call.path, "after", after);
    uri_query(&call.path, "wait", wait);
    rc = call_run(c, &call, err);
    if (rc == DFC_OK)
        *document = buf_steal(&call.reply.text);
    return rc;
}

int dfc_ring_pause(struct dfc_client *c, const char *ring, char **document, struct dfc_error *err)
{
    return small(c, "PUT", ring, "pause", document, err);
}

int dfc_ring_resume(struct dfc_client *c, const char *ring, char **document, struct dfc_error *err)
{
    return small(c, "PUT", ring, "resume", document, err);
}

int dfc_ring_clear(struct dfc_client *c, const char *ring, char **document, struct dfc_error *err)
{
    return small(c, "DELETE", ring, "samples", document, err);
}

/* Two swaps are two generations: it is not sent twice. */
int dfc_ring_swap(struct dfc_client *c, const char *ring, char **document, struct dfc_error *err)
{
    const struct call_small how = {.method = "PUT"};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = uri_object_in(&path, "rings", ring, "generation", err);
    return rc == DFC_OK ? call_small(c, &how, &path, document, err) : rc;
}

static int put_group(struct buf *path, const char *ring, const char *group, struct dfc_error *err)
{
    int rc = uri_object_in(path, "rings", ring, "groups", err);
    if (rc == DFC_OK)
        uri_query(path, "group", group);
    return rc;
}

int dfc_ring_group(struct dfc_client *c, const char *ring, const char *group, uint64_t done,
                   uint64_t lease_ms, char **document, struct dfc_error *err)
{
    const struct call_small how = {.method = "PUT", .twice_is_harmless = true};
    char lease[32];
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = put_group(&path, ring, group, err);
    if (rc != DFC_OK)
        return rc;
    uri_query_u64(&path, "done", done);
    snprintf(lease, sizeof lease, "%llums", (unsigned long long)lease_ms);
    if (lease_ms > 0)
        uri_query(&path, "lease", lease);
    return call_small(c, &how, &path, document, err);
}

int dfc_ring_leave(struct dfc_client *c, const char *ring, const char *group, char **document,
                   struct dfc_error *err)
{
    const struct call_small how = {.method = "DELETE", .twice_is_harmless = true};
    _cleanup_(buf_done)
    struct buf path = BUF_INIT;
    int rc = put_group(&path, ring, group, err);
    return rc == DFC_OK ? call_small(c, &how, &path, document, err) : rc;
}

int dfc_ring_push(struct dfc_client *c, const char *ring, const char *producer, uint64_t sequence,
                  const void *frames, size_t size, char **document, struct dfc_error *err)
{
    _cleanup_(call_done)
    struct call call = {.method = "POST",
                        .body = body_from_memory(frames, size),
                        .meets_owner = true,
                        .twice_is_harmless = producer != NULL};
    int rc = uri_object_in(&call.path, "rings", ring, "samples", err);
    if (rc != DFC_OK)
        return rc;
    if (producer != NULL) {
        uri_query(&call.path, "producer", producer);
        uri_query_u64(&call.path, "sequence", sequence);
    }
    rc = call_run(c, &call, err);
    if (rc == DFC_OK && document != NULL)
        *document = buf_steal(&call.reply.text);
    return rc;
}

/* *lost: of an error, how many samples are lost, or 0. */
static int read_samples(struct dfc_client *c, struct call *call, const char *ring, const char *lane,
                        uint64_t from, uint64_t count, uint64_t *lost, struct dfc_error *err)
{
    *lost = 0;
    int rc = uri_object_in(&call->path, "rings", ring, "samples", err);
    if (rc != DFC_OK)
        return rc;
    uri_query(&call->path, "lane", lane);
    uri_query_u64(&call->path, "from", from);
    uri_query_u64(&call->path, "count", count);
    rc = call_run(c, call, err);
    if (rc != DFC_OK)
        *lost = headers_get_u64(&call->reply.headers, "Dfc-Ring-Lost");
    if (*lost == UINT64_MAX)
        *lost = 0;
    return rc;
}

int dfc_ring_read_kept(struct dfc_client *c, const char *ring, const char *lane, uint64_t from,
                       uint64_t count, void **frames, size_t *size, uint64_t *lost,
                       struct dfc_error *err)
{
    _cleanup_(call_done)
    struct call call = {.method = "GET", .twice_is_harmless = true};
    int rc = read_samples(c, &call, ring, lane, from, count, lost, err);
    *size = rc == DFC_OK ? call.reply.text.len : 0;
    *frames = rc == DFC_OK ? buf_steal(&call.reply.text) : NULL;
    return *lost > 0 ? DFC_OK : rc;
}

int dfc_ring_read(struct dfc_client *c, const char *ring, const char *lane, uint64_t from,
                  uint64_t count, void **frames, size_t *size, struct dfc_error *err)
{
    _cleanup_(call_done)
    struct call call = {.method = "GET", .twice_is_harmless = true};
    uint64_t lost;
    int rc = read_samples(c, &call, ring, lane, from, count, &lost, err);
    if (rc == DFC_OK) {
        *size = call.reply.text.len;
        *frames = buf_steal(&call.reply.text);
    }
    return rc;
}
