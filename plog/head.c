#include "plog/head.h"

#include <endian.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/parse.h"
#include "plog/record.h"

static const struct {
    const char *name;
    size_t at;
    uint64_t max;
    bool may_lack; /* then it is 0, and 0 is not printed */
} numbers[] = {
    {"mode", offsetof(struct plog_head, mode), 07777, false},
    {"uid", offsetof(struct plog_head, uid), UINT32_MAX, false},
    {"gid", offsetof(struct plog_head, gid), UINT32_MAX, false},
    {"created_ms", offsetof(struct plog_head, created_ms), INT64_MAX, false},
    {"mtime_ms", offsetof(struct plog_head, mtime_ms), INT64_MAX, false},
    {"epoch", offsetof(struct plog_head, epoch), UINT32_MAX, false},
    {"size", offsetof(struct plog_head, size), PLOG_OFFSET_MAX, false},
    {"bytes", offsetof(struct plog_head, bytes), INT64_MAX, false},
    {"merged", offsetof(struct plog_head, merged), INT64_MAX, false},
    {"mark", offsetof(struct plog_head, mark), INT64_MAX, true},
};
enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

static int read_numbers(json_t *doc, struct plog_head *h, struct error *err)
{
    int code = 0;
    for (size_t i = 0; i < NUMBERS && code == 0; i++) {
        uint64_t value = 0;
        code = (numbers[i].may_lack ? json_get_u64 : json_need_u64)(doc, "head", numbers[i].name,
                                                                    &value, err);
        if (code == 0 && value > numbers[i].max)
            code = error_set(err, E_INVALID, "head.%s is out of range", numbers[i].name);
        if (code == 0)
            memcpy((char *)h + numbers[i].at, &value, sizeof value);
    }
    return code;
}

static int read_texts(json_t *doc, struct plog_head *h, struct error *err)
{
    const char *id, *nonce;
    int code = json_need_str(doc, "head", "id", &id, err);
    if (code == 0 && !plog_id_valid(id))
        code = error_set(err, E_INVALID, "head.id is no id");
    if (code == 0)
        code = json_need_str(doc, "head", "nonce", &nonce, err);
    if (code == 0)
        code = parse_hex(nonce, &h->nonce, sizeof h->nonce, err);
    if (code != 0)
        return code;
    memcpy(h->id, id, sizeof h->id);
    h->nonce = be64toh(h->nonce);
    return 0;
}

int plog_head_parse(const char *text, size_t len, struct plog_head *h, struct error *err)
{
    _cleanup_json_ json_t *doc = NULL;
    uint64_t format = 0;
    *h = (struct plog_head){.merged = 0};
    if (len > PLOG_HEAD_BYTES_MAX)
        return error_set(err, E_INVALID, "the object is too large for the head of a plog");
    int code = json_parse(text, len, &doc, err);
    if (code == 0 && !json_is_object(doc))
        code = error_set(err, E_INVALID, "it is no JSON object");
    if (code == 0)
        code = json_need_u64(doc, "head", "plog", &format, err);
    if (code == 0 && format != 1)
        return error_set(err, E_UNSUPPORTED, "the plog's format %llu is of a later release",
                         (unsigned long long)format);
    if (code == 0)
        code = read_numbers(doc, h, err);
    if (code == 0)
        code = read_texts(doc, h, err);
    return code == 0 ? 0 : error_recode(err, E_INVALID, "the object is no plog, or flat already");
}

void plog_head_print(const struct plog_head *h, struct buf *out)
{
    buf_printf(out, "{\"plog\":1,\"id\":\"%s\",\"nonce\":\"%016llx\"", h->id,
               (unsigned long long)h->nonce);
    for (size_t i = 0; i < NUMBERS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)h + numbers[i].at, sizeof value);
        if (value > 0 || !numbers[i].may_lack)
            buf_printf(out, ",\"%s\":%llu", numbers[i].name, (unsigned long long)value);
    }
    buf_puts(out, "}");
}
