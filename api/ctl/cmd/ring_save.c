/* ring save, ring verify. */
#include "api/ctl/commands.h"

#include <string.h>

#include "api/ctl/archive/old_shards.h"
#include "api/ctl/cmd/ring_read.h"
#include "api/ctl/names/name.h"
#include "api/dfc_ring.h"
#include "common/cleanup.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "sort/shard/tar_make.h"

enum { SHARD_BYTES = 256 << 20, FILE_MODE = 0644, LEFT_NAMED = 20 };

struct save {
    struct ctl *ctl;
    struct object_name to;
    uint64_t shard_bytes, samples, lost, shards, left, mtime;
    struct buf tar;
};

/* --- members ---------------------------------------------------------------------------------- */

/* The head of a file of numpy (NEP 1, version 1.0): magic, length, a dict as text, to 64 bytes. */
static void put_npy_head(struct buf *out, const struct frame_kind *k)
{
    static const char magic[] = "\x93NUMPY\x01";
    _cleanup_buf_ struct buf text = BUF_INIT;
    buf_printf(&text, "{'descr': '%.*s', 'fortran_order': False, 'shape': (", (int)k->dtype_len,
               k->dtype);
    for (unsigned i = 0; i < k->dims; i++)
        buf_printf(&text, "%llu,", (unsigned long long)k->shape[i]);
    buf_puts(&text, "), }");
    while ((text.len + 11) % 64 != 0)
        buf_putc(&text, ' ');
    buf_putc(&text, '\n');
    buf_append(out, magic, sizeof magic); /* its NUL is the minor version */
    buf_putc(out, (char)(text.len & 0xff));
    buf_putc(out, (char)(text.len >> 8));
    buf_append(out, text.data, text.len);
}

/* An array whose dtype can stand in such a head; else its bytes are saved as they are. */
static bool is_array(const struct frame_kind *k)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789<>|=";
    _cleanup_free_ char *dtype = xstrndup(k->dtype, k->dtype_len);
    return strcmp(dtype, "bytes") != 0 && dtype[strspn(dtype, letters)] == '\0';
}

/* "000000017.data", "000000017.data.npy" */
static int put_member(struct save *s, uint64_t index, const char *bytes, const struct frame_kind *k,
                      struct error *e)
{
    _cleanup_buf_ struct buf npy = BUF_INIT;
    _cleanup_free_ char *name = xprintf("%09llu.%.*s%s", (unsigned long long)index,
                                        (int)k->name_len, k->name, is_array(k) ? ".npy" : "");
    int code = name_check_local(name, e);
    if (code != 0)
        return code;
    if (is_array(k))
        put_npy_head(&npy, k);
    const struct tar_made made = {.path = name,
                                  .path_len = strlen(name),
                                  .type = '0',
                                  .size = npy.len + k->length,
                                  .mode = FILE_MODE,
                                  .mtime = (int64_t)s->mtime};
    tar_make_headers(&s->tar, &made);
    buf_append(&s->tar, npy.len > 0 ? npy.data : "", npy.len);
    buf_append(&s->tar, bytes + k->offset, k->length);
    return tar_put_padding(sink_buf(&s->tar), made.size, e);
}

/* --- shards ----------------------------------------------------------------------------------- */

static int end_shard(struct save *s)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    if (s->tar.len == 0)
        return EXIT_OK;
    _cleanup_free_ char *key = xprintf("%s%06llu.tar", s->to.key, (unsigned long long)s->shards);
    if (tar_put_end(sink_buf(&s->tar), &e) != 0)
        return ctl_fail_common(s->ctl, &e, EXIT_FAILED);
    if (dfc_put_memory(s->ctl->client, s->to.bucket, key, s->tar.data, s->tar.len, NULL, NULL,
                       &err) != DFC_OK)
        return ctl_fail(s->ctl, &err, key);
    s->shards++;
    buf_clear(&s->tar);
    return EXIT_OK;
}

static int save_sample(void *ctx, uint64_t index, const char *bytes, const struct frame *f)
{
    struct save *s = ctx;
    struct error e = ERROR_INIT;
    for (unsigned i = 0; i < f->kinds; i++) {
        struct frame_kind k;
        frame_kind(bytes, i, &k);
        if (put_member(s, index, bytes, &k, &e) != 0)
            return ctl_fail_common(s->ctl, &e, EXIT_FAILED);
    }
    s->samples++;
    return s->tar.len >= s->shard_bytes ? end_shard(s) : EXIT_OK;
}

static int note_lost(void *ctx, uint64_t index, uint64_t count, const char *why)
{
    struct save *s = ctx;
    s->lost += count;
    ctl_remark(s->ctl, "dfcctl: samples %llu to %llu: %s", (unsigned long long)index,
               (unsigned long long)(index + count - 1), why);
    return EXIT_OK;
}

/* A reader of all of them would get samples of two generations. */
static bool name_left(void *ctx, const char *name)
{
    struct save *s = ctx;
    if (s->left < LEFT_NAMED)
        ctl_remark(s->ctl, "left by an earlier save: '%s/%s'", s->to.bucket, name);
    s->left++;
    return true;
}

static int look_for_left(struct save *s)
{
    struct error e;
    struct dfc_error err;
    const struct old_shards old = {
        .bucket = s->to.bucket, .stem = s->to.key, .extension = ".tar", .from = s->shards};
    if (old_shards_each(s->ctl->client, &old, name_left, s, &err) < 0)
        return ctl_fail(s->ctl, &err, s->to.bucket);
    if (s->left == 0)
        return EXIT_OK;
    error_set(
        &e, E_OBJECT_EXISTS,
        "%llu shards of an earlier save are left behind the %llu of this one: remove them, or "
        "save below another prefix",
        (unsigned long long)s->left, (unsigned long long)s->shards);
    return ctl_fail_common(s->ctl, &e, EXIT_FAILED);
}

static int no_generation(struct ctl *ctl, const char *ring)
{
    struct error e;
    error_set(&e, E_NO_GENERATION, "ring '%s' has no generation yet", ring);
    return ctl_fail_common(ctl, &e, EXIT_NOTHING);
}

static int say_saved(struct ctl *ctl, const struct save *s, const char *ring, uint64_t generation)
{
    if (ctl->json)
        ctl_print_json(ctl,
                       json_pack("{s:s, s:I, s:I, s:I, s:I}", "ring", ring, "generation",
                                 (json_int_t)generation, "samples", (json_int_t)s->samples,
                                 "shards", (json_int_t)s->shards, "lost", (json_int_t)s->lost));
    else
        ctl_say(ctl, "ring %s: %llu samples of generation %llu in %llu shards, %llu lost", ring,
                (unsigned long long)s->samples, (unsigned long long)generation,
                (unsigned long long)s->shards, (unsigned long long)s->lost);
    return s->lost > 0 ? EXIT_FAILED : EXIT_OK;
}

int ring_save(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct save s = {.ctl = ctl,
                     .shard_bytes =
                         args->given[F_shards] ? args->number[F_shards] : (uint64_t)SHARD_BYTES};
    const struct ring_walk walk = {
        .ctl = ctl, .ring = args->words[0], .sample = save_sample, .lost = note_lost, .ctx = &s};
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_ring_head_ struct ring_head head = {.generation = 0};
    if (object_name_parse(args->words[1], &s.to, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    int code = ring_ask(ctl, args->words[0], &doc, &head);
    const struct ring_generation *g =
        code == EXIT_OK ? ring_head_generation(&head, head.generation) : NULL;
    if (code == EXIT_OK && g == NULL)
        code = no_generation(ctl, args->words[0]);
    if (code == EXIT_OK) {
        s.mtime = g->sealed_ms / 1000;
        code = ring_walk(&walk, g);
    }
    if (code == EXIT_OK)
        code = end_shard(&s);
    if (code == EXIT_OK) {
        const int said = say_saved(ctl, &s, args->words[0], g->number);
        code = look_for_left(&s);
        code = code == EXIT_OK ? said : code;
    }
    object_name_done(&s.to);
    buf_done(&s.tar);
    return code;
}

/* --- verify ----------------------------------------------------------------------------------- */

static int count_sample(void *ctx, uint64_t index, const char *bytes, const struct frame *f)
{
    struct save *s = ctx;
    (void)index;
    (void)bytes;
    (void)f;
    s->samples++;
    return EXIT_OK;
}

static int say_verified(struct ctl *ctl, const struct save *s, const char *ring, size_t generations)
{
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:s, s:I, s:I, s:I}", "ring", ring, "generations",
                                      (json_int_t)generations, "samples", (json_int_t)s->samples,
                                      "lost", (json_int_t)s->lost));
    else
        ctl_say(ctl, "ring %s: %zu generations, %llu samples are good, %llu are lost", ring,
                generations, (unsigned long long)s->samples, (unsigned long long)s->lost);
    return s->lost > 0 ? EXIT_FAILED : EXIT_OK;
}

int ring_verify(struct ctl *ctl, const struct args *args)
{
    struct save s = {.ctl = ctl};
    const struct ring_walk walk = {
        .ctl = ctl, .ring = args->words[0], .sample = count_sample, .lost = note_lost, .ctx = &s};
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_ring_head_ struct ring_head head = {.generation = 0};
    int code = ring_ask(ctl, args->words[0], &doc, &head);
    for (size_t i = 0; i < head.generations_count && code == EXIT_OK; i++)
        code = ring_walk(&walk, &head.generations[i]);
    return code == EXIT_OK ? say_verified(ctl, &s, args->words[0], head.generations_count) : code;
}
