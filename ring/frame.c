#include "ring/frame.h"

#include <string.h>

#include <xxhash.h>

#include "common/mem.h"

enum {
    AT_HEAD = 4,
    AT_TOTAL = 8,
    AT_ORDINAL = 16,
    AT_KINDS = 24,
    AT_FLAGS = 26,
    AT_ZERO = 28,
    AT_PRODUCER = 32,
    AT_SEQUENCE = 40,
    AT_PAYLOAD_SUM = 48,
    AT_HEAD_SUM = 56,
    KIND_FIXED = 24, /* of a kind, before its dimensions */
};
static const char magic[4] = {'D', 'F', 'R', 'F'};

static uint64_t get(const void *bytes, size_t at, unsigned size)
{
    const unsigned char *p = (const unsigned char *)bytes + at;
    uint64_t value = 0;
    for (unsigned i = size; i > 0; i--)
        value = value << 8 | p[i - 1];
    return value;
}

static void put(void *bytes, size_t at, unsigned size, uint64_t value)
{
    unsigned char *p = (unsigned char *)bytes + at;
    for (unsigned i = 0; i < size; i++, value >>= 8)
        p[i] = (unsigned char)value;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* --- reading ---------------------------------------------------------------------------------- */

int frame_peek(const void *bytes, struct frame *out, struct error *err)
{
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return error_set(err, E_FRAME, "a sample begins with 'DFRF'");
    *out = (struct frame){.head_len = (uint32_t)get(bytes, AT_HEAD, 4),
                          .total = get(bytes, AT_TOTAL, 8),
                          .ordinal = get(bytes, AT_ORDINAL, 8),
                          .kinds = (uint16_t)get(bytes, AT_KINDS, 2),
                          .flags = (uint16_t)get(bytes, AT_FLAGS, 2),
                          .producer = get(bytes, AT_PRODUCER, 8),
                          .sequence = get(bytes, AT_SEQUENCE, 8),
                          .payload_sum = get(bytes, AT_PAYLOAD_SUM, 8)};
    if (out->head_len < FRAME_FIXED + KIND_FIXED || out->head_len > FRAME_HEAD_MAX ||
        out->head_len % FRAME_ALIGN != 0)
        return error_set(err, E_FRAME, "the head length is %u: a multiple of %d, at most %d",
                         out->head_len, FRAME_ALIGN, FRAME_HEAD_MAX);
    if (out->total < out->head_len || out->total > FRAME_BYTES_MAX || out->total % FRAME_ALIGN != 0)
        return error_set(err, E_FRAME,
                         "the total length is %llu: a multiple of %d, at least the head",
                         (unsigned long long)out->total, FRAME_ALIGN);
    if (out->kinds < 1 || out->kinds > FRAME_KINDS_MAX)
        return error_set(err, E_FRAME, "a sample has 1 to %d kinds, not %u", FRAME_KINDS_MAX,
                         out->kinds);
    if (get(bytes, AT_ZERO, 4) != 0 || (out->flags & ~FRAME_ENDS) != 0)
        return error_set(err, E_FRAME, "the head has flags of a later release");
    return 0;
}

static uint64_t sum_of_head(const void *head, size_t len)
{
    unsigned char fixed[FRAME_FIXED];
    XXH3_state_t *state = XXH3_createState();
    memcpy(fixed, head, sizeof fixed);
    put(fixed, AT_HEAD_SUM, 8, 0);
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, fixed, sizeof fixed);
    XXH3_64bits_update(state, (const char *)head + FRAME_FIXED, len - FRAME_FIXED);
    uint64_t sum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return sum;
}

/* Bytes of the kind at `at`, as its lengths say. */
static size_t kind_size(const void *head, size_t at)
{
    return round_up(KIND_FIXED + 8 * get(head, at + 3, 1) + get(head, at, 2) + get(head, at + 2, 1),
                    8);
}

static void read_kind(const void *head, size_t at, struct frame_kind *out)
{
    out->name_len = get(head, at, 2);
    out->dtype_len = get(head, at + 2, 1);
    out->dims = (unsigned)get(head, at + 3, 1);
    out->offset = get(head, at + 8, 8);
    out->length = get(head, at + 16, 8);
    for (unsigned i = 0; i < out->dims; i++)
        out->shape[i] = get(head, at + KIND_FIXED + 8 * i, 8);
    out->name = (const char *)head + at + KIND_FIXED + 8 * out->dims;
    out->dtype = out->name + out->name_len;
}

static bool is_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] > '~' || text[i] == '/')
            return false;
    }
    return len > 0;
}

static int check_kind(const struct frame *f, unsigned i, const struct frame_kind *k,
                      struct error *err)
{
    if (!is_text(k->name, k->name_len) || k->name_len > FRAME_NAME_MAX)
        return error_set(err, E_FRAME,
                         "kind %u: the name is 1 to %d printable characters without '/'", i,
                         FRAME_NAME_MAX);
    if (!is_text(k->dtype, k->dtype_len))
        return error_set(err, E_FRAME, "kind %u: the dtype is 1 to %d printable characters", i,
                         FRAME_DTYPE_MAX);
    if (k->offset < f->head_len || k->offset % FRAME_ALIGN != 0 || k->offset > f->total ||
        k->length > f->total - k->offset)
        return error_set(err, E_FRAME, "kind %u: its bytes are outside of the sample", i);
    return 0;
}

static bool is_named_before(const void *head, unsigned i, const struct frame_kind *k)
{
    struct frame_kind other;
    for (unsigned j = 0; j < i; j++) {
        frame_kind(head, j, &other);
        if (other.name_len == k->name_len && memcmp(other.name, k->name, k->name_len) == 0)
            return true;
    }
    return false;
}

int frame_check_head(const void *head, const struct frame *f, struct error *err)
{
    size_t at = FRAME_FIXED;
    if (sum_of_head(head, f->head_len) != get(head, AT_HEAD_SUM, 8))
        return error_set(err, E_FRAME, "the head's checksum is wrong");
    for (unsigned i = 0; i < f->kinds; i++) {
        struct frame_kind k;
        if (f->head_len - at < KIND_FIXED || kind_size(head, at) > f->head_len - at)
            return error_set(err, E_FRAME, "kind %u is outside of the head", i);
        if (get(head, at + 2, 1) > FRAME_DTYPE_MAX || get(head, at + 3, 1) > FRAME_DIMS_MAX ||
            get(head, at + 4, 4) != 0)
            return error_set(err, E_FRAME,
                             "kind %u: a dtype of at most %d bytes, at most %d "
                             "dimensions",
                             i, FRAME_DTYPE_MAX, FRAME_DIMS_MAX);
        read_kind(head, at, &k);
        int code = check_kind(f, i, &k, err);
        if (code != 0)
            return code;
        if (is_named_before(head, i, &k))
            return error_set(err, E_FRAME, "kind '%.*s' is there twice", (int)k.name_len, k.name);
        at += kind_size(head, at);
    }
    return 0;
}

void frame_kind(const void *head, unsigned i, struct frame_kind *out)
{
    size_t at = FRAME_FIXED;
    for (; i > 0; i--)
        at += kind_size(head, at);
    read_kind(head, at, out);
}

uint64_t frame_sum(const void *payload, size_t len)
{
    return XXH3_64bits(payload, len);
}

int frame_check_push(const void *bytes, size_t len, uint64_t *count, struct error *err)
{
    const char *p = bytes;
    struct frame f;
    *count = 0;
    for (size_t left = len; left > 0; left -= f.total, p += f.total, ++*count) {
        int code = left < FRAME_FIXED ? error_set(err, E_FRAME, "the push ends within a head")
                                      : frame_peek(p, &f, err);
        if (code == 0 && f.total > left)
            code = error_set(err, E_FRAME, "the push ends within the sample");
        if (code == 0)
            code = frame_check_head(p, &f, err);
        if (code == 0 && frame_sum(p + f.head_len, f.total - f.head_len) != f.payload_sum)
            code = error_set(err, E_CHECKSUM, "the bytes are not those of the checksum");
        if (code != 0) {
            error_wrap(err, "sample %llu of the push", (unsigned long long)*count);
            return code;
        }
    }
    return *count > 0 ? 0 : error_set(err, E_FRAME, "the push has no sample");
}

/* --- writing ---------------------------------------------------------------------------------- */

void frame_stamp(void *head, const struct frame *f)
{
    put(head, AT_ORDINAL, 8, f->ordinal);
    put(head, AT_FLAGS, 2, f->flags);
    put(head, AT_PRODUCER, 8, f->producer);
    put(head, AT_SEQUENCE, 8, f->sequence);
    put(head, AT_HEAD_SUM, 8, sum_of_head(head, f->head_len));
}

static void put_kind(const struct frame_part *p, uint64_t offset, struct buf *out)
{
    unsigned char fixed[KIND_FIXED] = {0}, dim[8];
    const size_t begin = out->len;
    put(fixed, 0, 2, strlen(p->name));
    put(fixed, 2, 1, strlen(p->dtype));
    put(fixed, 3, 1, p->dims);
    put(fixed, 8, 8, offset);
    put(fixed, 16, 8, p->len);
    buf_append(out, fixed, sizeof fixed);
    for (unsigned i = 0; i < p->dims; i++) {
        put(dim, 0, 8, p->shape[i]);
        buf_append(out, dim, sizeof dim);
    }
    buf_puts(out, p->name);
    buf_puts(out, p->dtype);
    while ((out->len - begin) % 8 != 0)
        buf_putc(out, '\0');
}

static int check_parts(const struct frame_part *parts, unsigned count, size_t *head,
                       uint64_t *total, struct error *err)
{
    if (count < 1 || count > FRAME_KINDS_MAX)
        return error_set(err, E_FRAME, "a sample has 1 to %d kinds, not %u", FRAME_KINDS_MAX,
                         count);
    *head = FRAME_FIXED;
    *total = 0;
    for (unsigned i = 0; i < count; i++) {
        const struct frame_part *p = &parts[i];
        if (strlen(p->name) > FRAME_NAME_MAX || strlen(p->dtype) > FRAME_DTYPE_MAX ||
            p->dims > FRAME_DIMS_MAX)
            return error_set(err, E_FRAME,
                             "kind %u: a name of at most %d bytes, a dtype of at "
                             "most %d, at most %d dimensions",
                             i, FRAME_NAME_MAX, FRAME_DTYPE_MAX, FRAME_DIMS_MAX);
        *head += round_up(KIND_FIXED + 8 * p->dims + strlen(p->name) + strlen(p->dtype), 8);
        *total += round_up(p->len, FRAME_ALIGN);
    }
    *head = round_up(*head, FRAME_ALIGN);
    *total += *head;
    return *total <= FRAME_BYTES_MAX ? 0 : error_set(err, E_FRAME, "the sample is too large");
}

static void pad(struct buf *out, size_t begin)
{
    while ((out->len - begin) % FRAME_ALIGN != 0)
        buf_putc(out, '\0');
}

int frame_make(const struct frame_part *parts, unsigned count, struct buf *out, struct error *err)
{
    const size_t begin = out->len;
    unsigned char fixed[FRAME_FIXED] = {0};
    size_t head = 0;
    uint64_t total = 0;
    int code = check_parts(parts, count, &head, &total, err);
    if (code != 0)
        return code;
    buf_reserve(out, total);
    memcpy(fixed, magic, sizeof magic);
    put(fixed, AT_HEAD, 4, head);
    put(fixed, AT_TOTAL, 8, total);
    put(fixed, AT_KINDS, 2, count);
    buf_append(out, fixed, sizeof fixed);
    uint64_t offset = head;
    for (unsigned i = 0; i < count; i++) {
        put_kind(&parts[i], offset, out);
        offset += round_up(parts[i].len, FRAME_ALIGN);
    }
    pad(out, begin);
    for (unsigned i = 0; i < count; i++) {
        buf_append(out, parts[i].data, parts[i].len);
        pad(out, begin);
    }
    char *made = out->data + begin;
    struct frame f = {.head_len = (uint32_t)head};
    put(made, AT_PAYLOAD_SUM, 8, frame_sum(made + head, total - head));
    frame_stamp(made, &f);
    code = frame_peek(made, &f, err);
    return code != 0 ? code : frame_check_head(made, &f, err);
}
