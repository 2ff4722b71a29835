#include "target/sort/pinned.h"

#include <string.h>

#include "sort/base/codec.h"

enum {
    NAME_LEN_MAX = 1024,
    LEFT_MAX = 4096, /* of sort/task/plan.c */
};

static const char magic[8] = "DFCPINS4";

/* --- written ---------------------------------------------------------------------------------- */

int pinned_put_head(struct encoder *e, const struct pinned_head *head, struct error *err)
{
    int code = encoder_put(e, magic, sizeof magic, err);
    if (code == 0)
        code = encoder_put_u64(e, head->series, err);
    return code != 0 ? code : encoder_put_varint(e, head->left, err);
}

int pinned_put_shard(struct encoder *e, const struct pinned_shard *shard, struct error *err)
{
    const struct sort_shard_info *info = &shard->info;
    size_t len = strlen(info->name);
    int code = encoder_put_varint(e, 1, err);
    if (code == 0)
        code = encoder_put_varint(e, info->place, err);
    if (code == 0)
        code = encoder_put_varint(e, info->size, err);
    if (code == 0)
        code = encoder_put_varint(e, info->missing, err);
    if (code == 0)
        code = encoder_put_varint(e, info->without, err);
    if (code == 0)
        code = encoder_put_u64(e, shard->stamp, err);
    if (code == 0)
        code = encoder_put_varint(e, len, err);
    if (code == 0)
        code = encoder_put(e, info->name, len, err);
    if (code == 0)
        code = encoder_put_u64(e, (uint64_t)info->modified_s, err);
    if (code == 0)
        code = encoder_put_varint(e, info->checksum.type, err);
    return code != 0
               ? code
               : encoder_put(e, info->checksum.bytes, checksum_size(info->checksum.type), err);
}

int pinned_put_end(struct encoder *e, struct error *err)
{
    int code = encoder_put_varint(e, 0, err);
    return code != 0 ? code : encoder_put_checksum(e, err);
}

/* --- read ------------------------------------------------------------------------------------- */

static int get_stored(struct decoder *d, struct sort_shard_info *info, struct error *err)
{
    uint64_t modified = 0, type = 0;
    int code = decoder_get_u64(d, &modified, err);
    if (code == 0)
        code = decoder_get_bounded(d, CHECKSUM_TYPES - 1, "a type of checksum", &type, err);
    if (code != 0)
        return code;
    info->modified_s = (int64_t)modified;
    info->checksum.type = (enum checksum_type)type;
    return decoder_get(d, info->checksum.bytes, checksum_size(info->checksum.type), err);
}

static int get_shard(struct decoder *d, struct pinned_shard *shard,
                     char name[static NAME_LEN_MAX + 1], struct error *err)
{
    struct sort_shard_info *info = &shard->info;
    uint64_t missing = 0, left = 0, len = 0;
    int code = decoder_get_varint(d, &info->place, err);
    if (code == 0)
        code = decoder_get_varint(d, &info->size, err);
    if (code == 0)
        code = decoder_get_bounded(d, 1, "a mark", &missing, err);
    if (code == 0)
        code = decoder_get_bounded(d, LEFT_MAX, "a number of targets", &left, err);
    if (code == 0)
        code = decoder_get_u64(d, &shard->stamp, err);
    if (code == 0)
        code = decoder_get_bounded(d, NAME_LEN_MAX, "the length of a name", &len, err);
    if (code == 0)
        code = decoder_get(d, name, (size_t)len, err);
    if (code != 0) /* then `len` may be any number */
        return code;
    name[len] = '\0';
    info->name = name;
    info->missing = missing != 0;
    info->without = (unsigned)left;
    return get_stored(d, info, err);
}

static int get_head(struct decoder *d, struct pinned_head *head, struct error *err)
{
    char found[sizeof magic] = {0};
    uint64_t number = 0;
    int code = decoder_get(d, found, sizeof found, err);
    if (code == 0 && memcmp(found, magic, sizeof magic) != 0)
        return error_set(err, E_CORRUPT, "it is no list of shards");
    if (code == 0)
        code = decoder_get_u64(d, &head->series, err);
    if (code == 0)
        code = decoder_get_bounded(d, LEFT_MAX, "a number of targets", &number, err);
    head->left = (unsigned)number;
    return code;
}

int pinned_each(const struct buf *text, struct pinned_head *head, pinned_fn *each, void *arg,
                struct error *err)
{
    char name[NAME_LEN_MAX + 1];
    struct span span = {.data = (const unsigned char *)text->data, .len = text->len};
    struct decoder d;
    uint64_t more = 1;
    decoder_init(&d, source_span(&span));
    int code = get_head(&d, head, err);
    while (code == 0 && more != 0) {
        struct pinned_shard shard = {0};
        code = decoder_get_bounded(&d, 1, "a mark", &more, err);
        if (code == 0 && more != 0)
            code = get_shard(&d, &shard, name, err);
        if (code == 0 && more != 0)
            code = each(arg, &shard, err);
    }
    if (code == 0)
        code = decoder_get_checksum(&d, err);
    decoder_done(&d);
    return code;
}
