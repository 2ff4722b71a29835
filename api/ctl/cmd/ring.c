/* ring status, wait, swap, clear, push, get. */
#include "api/ctl/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/dfc_ring.h"
#include "api/ctl/cmd/ring_read.h"
#include "api/ctl/files/landing.h"
#include "api/ctl/interrupt.h"
#include "api/ctl/names/name.h"
#include "api/ctl/print/table.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/jsonx.h"
#include "common/mem.h"
#include "common/parse.h"
#include "common/rng.h"
#include "ring/frame.h"
#include "ring/head.h"

enum { FILE_BYTES_MAX = 256 << 20, PRODUCER_MAX = 32, LOOK_MS = 1000 };

DEFINE_CLEANUP(struct table, table_free);

static int64_t number(json_t *doc, const char *field)
{
    return json_integer_value(json_object_get(doc, field));
}

/* ---- status ---- */

/* Samples a second of the i-th generation, and of those that were sealed with it; 0: not known. */
static double rate_of(const struct ring_head *h, size_t i)
{
    const struct ring_generation *g = h->generations;
    const uint64_t sealed_ms = g[i].sealed_ms;
    uint64_t samples = 0;
    while (i + 1 < h->generations_count && g[i + 1].sealed_ms == sealed_ms)
        i++;
    size_t from = i + 1;
    while (from > 0 && g[from - 1].sealed_ms == sealed_ms)
        samples += g[--from].samples;
    const uint64_t before_ms = from > 0 ? g[from - 1].sealed_ms : sealed_ms;
    return before_ms < sealed_ms ? 1000.0 * (double)samples / (double)(sealed_ms - before_ms) : 0;
}

static void print_generations(struct ctl *ctl, const struct ring_head *h)
{
    static const char *const headers[] = {"GENERATION", "SAMPLES",   "LANES",
                                          "SEALED",     "SAMPLES/S", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    char sealed[32];
    for (size_t i = h->generations_count; i > 0; i--) {
        const struct ring_generation *g = &h->generations[i - 1];
        table_cellf(t, "%llu", (unsigned long long)g->number);
        table_cellf(t, "%llu", (unsigned long long)g->samples);
        table_cellf(t, "%zu", g->count);
        table_cell(t, ctl_time((int64_t)g->sealed_ms, sealed));
        const double rate = rate_of(h, i - 1);
        if (rate > 0)
            table_cellf(t, "%.1f", rate);
        else
            table_cell(t, "-");
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

static int read_head(struct ctl *ctl, json_t *doc, struct ring_head *out)
{
    struct error e = ERROR_INIT;
    _cleanup_free_ char *text = json_text(json_object_get(doc, "head"));
    if (text != NULL && ring_head_parse(text, strlen(text), out, &e) == 0)
        return EXIT_OK;
    return ctl_fail_common(ctl, &e, EXIT_FAILED);
}

/* Why a full generation does not become the current one. */
static const char *held_by(json_t *doc, const struct ring_head *h)
{
    const char *swap = json_string_value(json_object_get(doc, "swap"));
    if (h->is_paused)
        return ", paused";
    return number(doc, "fill") >= number(doc, "cap") &&
                   ring_head_is_held(h, swap != NULL && strcmp(swap, "consumed") == 0)
               ? ", waits for readers"
               : "";
}

int ring_status(struct ctl *ctl, const struct args *args)
{
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_ring_head_ struct ring_head head = {.generation = 0};
    int code = ring_ask(ctl, args->words[0], &doc, &head);
    if (code != EXIT_OK)
        return code;
    if (ctl->json) {
        ctl_print_json(ctl, steal(doc));
        return EXIT_OK;
    }
    ctl_say(ctl, "ring %s: generation %llu, %lld of %lld samples of the next one%s, keeper %s",
            args->words[0], (unsigned long long)head.generation, (long long)number(doc, "fill"),
            (long long)number(doc, "cap"), held_by(doc, &head),
            json_string_value(json_object_get(doc, "keeper")));
    print_generations(ctl, &head);
    return EXIT_OK;
}

/* ---- wait ---- */

static int poll_status(struct ctl *ctl, const char *ring, uint64_t wanted, uint64_t timeout_ms,
                       json_t **doc, struct ring_head *head)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    const uint64_t wait_ms = timeout_ms > 0 && timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
    if (wanted == 0)
        return ring_ask(ctl, ring, doc, head);
    if (dfc_ring_wait(ctl->client, ring, wanted - 1, (uint32_t)wait_ms, &text, &err) != DFC_OK)
        return ring_fail(ctl, &err, "ask for", ring);
    int code = ctl_parse(ctl, text, doc);
    return code == EXIT_OK ? read_head(ctl, *doc, head) : code;
}

static int wait_for(struct ctl *ctl, const char *ring, uint64_t wanted, uint64_t timeout_ms)
{
    const uint64_t began = clock_ms();
    for (;;) {
        _cleanup_json_ json_t *doc = NULL;
        _cleanup_ring_head_ struct ring_head head = {.generation = 0};
        int code = poll_status(ctl, ring, wanted, timeout_ms, &doc, &head);
        if (code != EXIT_OK || head.generation >= wanted)
            return code;
        if (timeout_ms > 0 && clock_ms() - began > timeout_ms) {
            ctl_remark(ctl, "dfcctl: generation %llu, and %lld of %lld samples of the next one",
                       (unsigned long long)head.generation, (long long)number(doc, "fill"),
                       (long long)number(doc, "cap"));
            return EXIT_UNREACHABLE; /* as job wait says that the time ran out */
        }
        if (interrupted())
            return EXIT_INTERRUPTED;
    }
}

int ring_wait(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    uint64_t wanted;
    if (parse_u64(args->words[1], &wanted, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    int code = wait_for(ctl, args->words[0], wanted, args->number[F_timeout]);
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(
            ctl, json_pack("{s:s, s:I}", "ring", args->words[0], "generation", (json_int_t)wanted));
    else
        ctl_say(ctl, "ring %s: generation %llu is there", args->words[0],
                (unsigned long long)wanted);
    return EXIT_OK;
}

/* ---- swap, clear ---- */

typedef int ring_call(struct dfc_client *client, const char *ring, char **document,
                      struct dfc_error *err);

static int act(struct ctl *ctl, const struct args *args, ring_call *call, const char *verb,
               const char *said)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (call(ctl->client, args->words[0], &text, &err) != DFC_OK)
        return ring_fail(ctl, &err, verb, args->words[0]);
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        ctl_say(ctl, said, args->words[0], (long long)number(doc, "generation"));
    return EXIT_OK;
}

int ring_swap(struct ctl *ctl, const struct args *args)
{
    return act(ctl, args, dfc_ring_swap, "swap", "ring %s: generation %lld");
}

int ring_pause(struct ctl *ctl, const struct args *args)
{
    return act(ctl, args, dfc_ring_pause, "pause", "ring %s: paused behind generation %lld");
}

int ring_resume(struct ctl *ctl, const struct args *args)
{
    return act(ctl, args, dfc_ring_resume, "resume", "ring %s: resumed behind generation %lld");
}

static int say_group(struct ctl *ctl, const char *text, const char *said, const char *ring,
                     const char *group)
{
    _cleanup_json_ json_t *doc = NULL;
    int code = ctl_parse(ctl, text, &doc);
    if (code == EXIT_OK && ctl->json)
        ctl_print_json(ctl, steal(doc));
    else if (code == EXIT_OK)
        ctl_say(ctl, "ring %s: group %s %s; the ring has generation %lld", ring, group,
                json_is_true(json_object_get(doc, "joined")) ? "has joined" : said,
                (long long)number(doc, "generation"));
    return code;
}

int ring_ack(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    uint64_t done;
    _cleanup_free_ char *text = NULL;
    if (parse_u64(args->words[2], &done, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    if (dfc_ring_group(ctl->client, args->words[0], args->words[1], done,
                       args->given[F_timeout] ? args->number[F_timeout] : 0, &text, &err) != DFC_OK)
        return ring_fail(ctl, &err, "acknowledge a generation of", args->words[0]);
    return say_group(ctl, text, "stays", args->words[0], args->words[1]);
}

int ring_leave(struct ctl *ctl, const struct args *args)
{
    struct dfc_error err;
    _cleanup_free_ char *text = NULL;
    if (dfc_ring_leave(ctl->client, args->words[0], args->words[1], &text, &err) != DFC_OK)
        return ring_fail(ctl, &err, "leave", args->words[0]);
    return say_group(ctl, text, "has left", args->words[0], args->words[1]);
}

int ring_clear(struct ctl *ctl, const struct args *args)
{
    return act(ctl, args, dfc_ring_clear, "clear", "ring %s: empty; its last generation was %lld");
}

/* ---- push ---- */

/* "KIND=FILE", or FILE, whose kind is its name up to the first dot. */
static char *kind_of(const char *word, const char **path)
{
    const char *equals = strchr(word, '=');
    if (equals != NULL) {
        *path = equals + 1;
        return xstrndup(word, (size_t)(equals - word));
    }
    *path = word;
    const char *base = name_base(word);
    return xstrndup(base, strcspn(base, "."));
}

static int read_file(const char *path, struct buf *out, struct error *e)
{
    struct stat st;
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        return error_errno(e, errno, "open '%s'", path);
    if (!S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX)
        return error_set(e, E_INVALID, "'%s' is no file of at most %d MiB", path,
                         FILE_BYTES_MAX >> 20);
    buf_reserve(out, (size_t)st.st_size);
    while (out->len < (size_t)st.st_size) {
        ssize_t n = read(fd, out->data + out->len, (size_t)st.st_size - out->len);
        if (n < 0)
            return error_errno(e, errno, "read '%s'", path);
        if (n == 0)
            return error_set(e, E_LENGTH, "'%s' became shorter while it was read", path);
        out->len += (size_t)n;
    }
    return 0;
}

static int make_sample(const struct args *args, struct buf *frame, struct error *e)
{
    const size_t count = args->word_count - 1;
    struct frame_part parts[FRAME_KINDS_MAX] = {{.name = NULL}};
    char *kinds[FRAME_KINDS_MAX] = {NULL};
    struct buf files[FRAME_KINDS_MAX] = {BUF_INIT};
    int code = count > FRAME_KINDS_MAX
                   ? error_set(e, E_INVALID, "a sample has at most %d kinds", FRAME_KINDS_MAX)
                   : 0;
    size_t read = 0;
    for (; read < count && code == 0; read++) {
        const char *path;
        kinds[read] = kind_of(args->words[read + 1], &path);
        code = read_file(path, &files[read], e);
        parts[read] = (struct frame_part){.name = kinds[read],
                                          .dtype = "bytes",
                                          .data = buf_str(&files[read]),
                                          .len = files[read].len};
    }
    if (code == 0)
        code = frame_make(parts, (unsigned)count, frame, e);
    for (size_t i = 0; i < read; i++) {
        free(kinds[i]);
        buf_done(&files[i]);
    }
    return code;
}

int ring_push(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    char producer[PRODUCER_MAX];
    _cleanup_buf_ struct buf frame = BUF_INIT;
    _cleanup_free_ char *text = NULL;
    _cleanup_json_ json_t *doc = NULL;
    if (make_sample(args, &frame, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    random_id("dfcctl-", producer);
    if (dfc_ring_push(ctl->client, args->words[0], producer, 1, frame.data, frame.len, &text,
                      &err) != DFC_OK)
        return ring_fail(ctl, &err, "push into", args->words[0]);
    int code = ctl_parse(ctl, text, &doc);
    if (code != EXIT_OK)
        return code;
    if (ctl->json)
        ctl_print_json(ctl, steal(doc));
    else
        ctl_say(ctl, "ring %s: sample %lld of lane %s", args->words[0],
                (long long)number(doc, "first"), json_string_value(json_object_get(doc, "lane")));
    return EXIT_OK;
}

/* ---- get ---- */

static int write_all(int fd, const char *bytes, size_t len, struct error *e)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0)
            return error_errno(e, errno, "write");
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

/* The kind's name comes from whoever has pushed it. */
static int save_kind(const char *dir, const char *frame, const struct frame_kind *k,
                     struct error *e)
{
    struct landing l = LANDING_INIT;
    _cleanup_free_ char *name = xstrndup(k->name, k->name_len);
    _cleanup_close_ int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return error_errno(e, errno, "open '%s'", dir);
    int code = name_check_local(name, e);
    if (code == 0)
        code = landing_open_below(&l, root, name, e);
    if (code == 0)
        code = write_all(l.fd, frame + k->offset, k->length, e);
    if (code == 0)
        code = landing_commit(&l, e);
    landing_done(&l);
    return code != 0 ? error_recode(e, code, "kind '%s'", name) : 0;
}

static json_t *kind_to_json(const struct frame_kind *k)
{
    json_t *shape = json_array();
    for (unsigned i = 0; i < k->dims; i++)
        json_array_append_new(shape, json_integer((json_int_t)k->shape[i]));
    return json_pack("{s:s%, s:s%, s:o, s:I}", "kind", k->name, k->name_len, "dtype", k->dtype,
                     k->dtype_len, "shape", shape, "bytes", (json_int_t)k->length);
}

static void print_kinds(struct ctl *ctl, json_t *kinds)
{
    static const char *const headers[] = {"KIND", "DTYPE", "SHAPE", "BYTES", NULL};
    _cleanup_(table_freep)
    struct table *t = table_new(headers);
    size_t i;
    json_t *k;
    json_array_foreach(kinds, i, k)
    {
        _cleanup_free_ char *shape = json_text(json_object_get(k, "shape"));
        table_cell(t, json_string_value(json_object_get(k, "kind")));
        table_cell(t, json_string_value(json_object_get(k, "dtype")));
        table_cell(t, shape);
        table_cellf(t, "%lld", (long long)number(k, "bytes"));
    }
    table_print(t, ctl->out, ctl->headers, ctl->colour);
}

/* Checks the sample, saves its kinds where a directory is named, and shows them. */
static int show_sample(struct ctl *ctl, const char *bytes, size_t size, const char *dir)
{
    struct error e = ERROR_INIT;
    struct frame f;
    uint64_t count;
    _cleanup_json_ json_t *kinds = json_array();
    int code = frame_check_push(bytes, size, &count, &e);
    if (code == 0 && count != 1)
        code = error_set(&e, E_FRAME, "the reply has %llu samples", (unsigned long long)count);
    if (code == 0)
        code = frame_peek(bytes, &f, &e);
    for (unsigned i = 0; code == 0 && i < f.kinds; i++) {
        struct frame_kind k;
        frame_kind(bytes, i, &k);
        json_array_append_new(kinds, kind_to_json(&k));
        code = dir != NULL ? save_kind(dir, bytes, &k, &e) : 0;
    }
    if (code != 0)
        return ctl_fail_common(ctl, &e, EXIT_FAILED);
    if (ctl->json)
        ctl_print_json(ctl, json_pack("{s:O}", "kinds", kinds));
    else
        print_kinds(ctl, kinds);
    return EXIT_OK;
}

int ring_get(struct ctl *ctl, const struct args *args)
{
    struct error e = ERROR_INIT;
    struct dfc_error err;
    const char *lane, *dir = args->word_count > 2 ? args->words[2] : NULL;
    uint64_t index, ordinal;
    _cleanup_json_ json_t *doc = NULL;
    _cleanup_ring_head_ struct ring_head head = {.generation = 0};
    _cleanup_free_ void *bytes = NULL;
    size_t size;
    if (parse_u64(args->words[1], &index, &e) != 0)
        return ctl_fail_common(ctl, &e, EXIT_USAGE);
    int code = ring_ask(ctl, args->words[0], &doc, &head);
    if (code != EXIT_OK)
        return code;
    const struct ring_generation *g = ring_head_generation(&head, head.generation);
    if (g == NULL || !ring_generation_find(g, index, &lane, &ordinal)) {
        error_set(&e, g == NULL ? E_NO_GENERATION : E_INVALID,
                  g == NULL ? "ring '%s' has no generation yet"
                            : "the generation of ring '%s' has no such index: it has %llu samples",
                  args->words[0], g == NULL ? 0 : (unsigned long long)g->samples);
        return ctl_fail_common(ctl, &e, EXIT_NOTHING);
    }
    if (dir != NULL && mkdir(dir, 0755) != 0 && errno != EEXIST) {
        error_errno(&e, errno, "make '%s'", dir);
        return ctl_fail_common(ctl, &e, EXIT_FAILED);
    }
    if (dfc_ring_read(ctl->client, args->words[0], lane, ordinal, 1, &bytes, &size, &err) != DFC_OK)
        return ring_fail(ctl, &err, "read from", args->words[0]);
    return show_sample(ctl, bytes, size, dir);
}
