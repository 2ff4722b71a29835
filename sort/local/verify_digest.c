#include "sort/local/verify_digest.h"

static void add_number(XXH3_state_t *state, uint64_t value)
{
    XXH3_128bits_update(state, &value, sizeof value);
}

static void add_text(XXH3_state_t *state, const char *text, size_t len)
{
    add_number(state, len);
    if (len > 0)
        XXH3_128bits_update(state, text, len);
}

static void sum_add(XXH128_hash_t *sum, const XXH128_hash_t *h)
{
    sum->low64 += h->low64;
    sum->high64 += h->high64;
}

void digest_add(struct digest *d, const XXH128_hash_t *member)
{
    const XXH128_hash_t both[2] = {d->ordered, *member};
    d->ordered = XXH3_128bits(both, sizeof both);
    sum_add(&d->sum, member);
    d->members++;
}

/* All but links and what has no contents are files, whatever an old tar called them. */
static char kind_of(char type)
{
    return type >= '1' && type <= '6' ? type : '0';
}

static int on_begin(void *ctx, const struct untar_member *m, struct error *err)
{
    (void)err;
    struct digester *d = ctx;
    char kind = kind_of(m->type);
    bool is_link = kind == '1' || kind == '2';
    buf_clear(&d->path);
    buf_append(&d->path, m->path, m->path_len);
    XXH3_128bits_reset(d->state);
    add_text(d->state, m->path, m->path_len);
    add_text(d->state, &kind, 1);
    add_text(d->state, m->link, is_link ? m->link_len : 0);
    return 0;
}

static int on_data(void *ctx, const void *data, size_t len, struct error *err)
{
    (void)err;
    struct digester *d = ctx;
    XXH3_128bits_update(d->state, data, len);
    return 0;
}

static int on_end(void *ctx, struct error *err)
{
    struct digester *d = ctx;
    XXH128_hash_t digest = XXH3_128bits_digest(d->state);
    return d->member(d->ctx, d->path.data, d->path.len, &digest, err);
}

static const struct untar_events events = {.begin = on_begin, .data = on_data, .end = on_end};

void digester_init(struct digester *d,
                   int (*member)(void *ctx, const char *path, size_t len,
                                 const XXH128_hash_t *digest, struct error *err),
                   void *ctx)
{
    *d = (struct digester){.state = XXH3_createState(), .member = member, .ctx = ctx};
    untar_init(&d->untar, &events, d);
}

void digester_done(struct digester *d)
{
    untar_done(&d->untar);
    buf_done(&d->path);
    XXH3_freeState(d->state);
}

int digester_write(struct digester *d, const void *tar, size_t len, struct error *err)
{
    return untar_write(&d->untar, tar, len, err);
}
