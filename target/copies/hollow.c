#include "target/copies/hollow.h"

#include "cluster/members/location.h"
#include "common/mem.h"
#include "target/store/object.h"
#include "target/copies/object_copy.h"
#include "target/node/header_lines.h"
#include "target/node/target.h"

bool hollow_is_for_good(int code)
{
    return code == E_NO_SPACE || code == E_TOO_LARGE || code == E_HEADERS_TOO_LARGE ||
           code == E_URI_TOO_LONG || code == E_INVALID;
}

bool hollow_is_possible(const struct object_held *held)
{
    return held->visible && held->size > 0 && held->slices == 0;
}

int hollow_keep(struct target *t, const struct bucket *b, const char *name,
                const struct object_held *held, struct error *err)
{
    struct object_put *put = NULL;
    const struct object_moved as = {
        .version = held->version, .modified_ms = held->modified_ms, .hollow = held->size};
    const struct object_put_spec spec = {.bucket_id = b->id,
                                         .name = name,
                                         .durability = DURABILITY_SYNC,
                                         .checksum = CHECKSUM_NONE,
                                         .expect = &held->checksum,
                                         .moved = &as};
    int code = object_put_begin(t->store, &spec, &put, err);
    if (code == 0)
        code = object_put_commit_wait(put, err);
    return error_forgive(err, code, E_NOT_MODIFIED);
}

int hollow_send(struct target *t, const struct cluster_state *s, const struct bucket *b,
                const char *name, const struct object_held *held, const struct node *to,
                struct error *err)
{
    char version[VERSION_TEXT_MAX];
    struct header_lines h;
    _cleanup_free_ char *url = location_of_copy(to, s, b, name);
    header_lines_begin(&h);
    header_lines_add(&h, OBJECT_COPY_HEADER ": " OBJECT_COPY_HOLLOW);
    header_lines_printf(&h, "Dfc-Version: %s", version_format(&held->version, version));
    header_lines_printf(&h, OBJECT_MODIFIED_HEADER ": %lld", (long long)held->modified_ms);
    header_lines_printf(&h, HOLLOW_HEADER ": %llu", (unsigned long long)held->size);
    header_lines_checksum(&h, &held->checksum);
    const struct http_call call = {.method = HTTP_PUT,
                                   .url = url,
                                   .node = to->id,
                                   .headers = h.lines,
                                   .body = "",
                                   .body_len = 0};
    int code = object_copier_call(t->copier, &call, NULL, err);
    header_lines_end(&h);
    return error_forgive(err, code, E_NOT_MODIFIED);
}
