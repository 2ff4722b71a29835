/* An item is a row whose name is
 *
 *     key, NUL, rank (8 bytes, high first), 0, payload
 *     key, NUL, rank (8 bytes, high first), 1, offset in the blob, length (8 bytes each)
 *
 * Bytewise order is then the order of (key, rank), a shorter key before what it begins. */
#include "sort/rows/items.h"

#include <assert.h>

#include "common/mem.h"
#include "sort/base/blob.h"
#include "sort/rows/rowset.h"

#define NUMBER 8
#define HERE 0
#define ELSEWHERE 1
#define HEAD_MAX (1 + NUMBER + 1 + 2 * NUMBER) /* beside key and payload */

_Static_assert(SORT_NAME_MAX + HEAD_MAX <= ROW_NAME_MAX, "the longest key fits into a row");

struct items {
    struct sort_order order;
    struct rowset *rows;
    struct blob *longer;
    struct row_source source;
    struct buf name;    /* of the row that is added */
    struct buf payload; /* of the item that is read, when it was in the blob */
};

int items_new(const struct sort_env *env, uint64_t memory, struct items **out, struct error *err)
{
    _cleanup_(items_freep)
    struct items *s = xcalloc(1, sizeof *s);
    s->order = (struct sort_order){.algorithm = SORT_ALPHANUMERIC};
    s->longer = blob_new(env, 0);
    int rc = rowset_new(env, &s->order, memory, 1, &s->rows, err);
    if (rc == 0)
        *out = steal(s);
    return rc;
}

void items_free(struct items *s)
{
    if (s == NULL)
        return;
    rowset_free(s->rows);
    blob_free(s->longer);
    buf_done(&s->name);
    buf_done(&s->payload);
    free(s);
}

uint64_t items_count(const struct items *s)
{
    return rowset_count(s->rows);
}

uint64_t items_spilled(const struct items *s)
{
    return rowset_spilled(s->rows) + blob_size(s->longer);
}

static void put_number(struct buf *out, uint64_t value)
{
    unsigned char bytes[NUMBER];
    for (unsigned i = 0; i < NUMBER; i++)
        bytes[i] = (unsigned char)(value >> (8 * (NUMBER - 1 - i)));
    buf_append(out, bytes, sizeof bytes);
}

static uint64_t get_number(const unsigned char *at)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < NUMBER; i++)
        value = value << 8 | at[i];
    return value;
}

static int put_payload(struct items *s, const struct buf *payload, struct error *err)
{
    if (s->name.len + 1 + payload->len <= ROW_NAME_MAX) {
        buf_putc(&s->name, HERE);
        buf_append(&s->name, payload->data, payload->len);
        return 0;
    }
    buf_putc(&s->name, ELSEWHERE);
    put_number(&s->name, blob_size(s->longer));
    put_number(&s->name, payload->len);
    return blob_append(s->longer, payload->data, payload->len, err);
}

int items_add(struct items *s, const char *key, size_t key_len, uint64_t rank,
              const struct buf *payload, struct error *err)
{
    assert(key_len <= SORT_NAME_MAX);
    buf_clear(&s->name);
    buf_append(&s->name, key, key_len);
    buf_putc(&s->name, '\0');
    put_number(&s->name, rank);
    int rc = put_payload(s, payload, err);
    struct sort_row row = {
        .name = s->name.data, .name_len = (uint32_t)s->name.len, .size = SORT_BLOCK};
    return rc != 0 ? rc : rowset_add(s->rows, &row, err);
}

int items_open(struct items *s, struct error *err)
{
    return rowset_open(s->rows, &s->source, err);
}

static int item_malformed(struct error *err)
{
    return error_set(err, E_CORRUPT, "a work file does not hold what was written into it");
}

/* Of `left` bytes behind the mark ELSEWHERE. */
static int get_elsewhere(struct items *s, const unsigned char *at, size_t left, struct item *out,
                         struct error *err)
{
    if (left != 2 * NUMBER)
        return item_malformed(err);
    uint64_t offset = get_number(at);
    uint64_t len = get_number(at + NUMBER);
    uint64_t size = blob_size(s->longer);
    if (offset > size || len > size - offset)
        return item_malformed(err);
    buf_clear(&s->payload);
    buf_reserve(&s->payload, (size_t)len);
    out->payload = (const unsigned char *)s->payload.data;
    out->len = (size_t)len;
    return blob_read(s->longer, offset, s->payload.data, (size_t)len, err);
}

int items_next(struct items *s, struct item *out, struct error *err)
{
    struct sort_row row;
    int rc = s->source.next(s->source.ctx, &row, err);
    if (rc <= 0)
        return rc;
    const char *end = memchr(row.name, '\0', row.name_len);
    size_t left = end == NULL ? 0 : (size_t)(row.name + row.name_len - end);
    if (left < 1 + NUMBER + 1)
        return item_malformed(err);
    const unsigned char *at = (const unsigned char *)end + 1;
    *out = (struct item){
        .key = row.name,
        .key_len = (size_t)(end - row.name),
        .rank = get_number(at),
        .payload = at + NUMBER + 1,
        .len = left - 1 - NUMBER - 1,
    };
    if (at[NUMBER] == ELSEWHERE)
        rc = get_elsewhere(s, out->payload, out->len, out, err);
    return rc < 0 ? rc : 1;
}
