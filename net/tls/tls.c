#include "net/tls/tls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/metrics.h"
#include "net/tls/pair.h"

enum { DAY_S = 24 * 3600 };

/* Which file it was: a renewal replaces it, or writes into it. */
struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct tls {
    char *cert_file;
    char *key_file;
    struct stamp stamps[2]; /* of the pair that was last loaded, or refused */
    int64_t warned_s;       /* Unix time of the last warning that it expires */
    atomic_int_fast64_t expires_s;
    pthread_mutex_t lock; /* guards what follows */
    SSL_CTX *ctx;
};

static struct stamp stamp_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return (struct stamp){0};
    return (struct stamp){
        .device = st.st_dev, .inode = st.st_ino, .size = st.st_size, .changed = st.st_ctim};
}

static bool stamp_same(const struct stamp *a, const struct stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* The stamps are taken before the files are read: a change meanwhile is seen at the next look. */
static bool note_stamps(struct tls *t)
{
    const struct stamp now[2] = {stamp_of(t->cert_file), stamp_of(t->key_file)};
    bool same = stamp_same(&now[0], &t->stamps[0]) && stamp_same(&now[1], &t->stamps[1]);
    memcpy(t->stamps, now, sizeof now);
    return !same;
}

static int load(struct tls *t, struct error *err)
{
    SSL_CTX *ctx;
    int64_t expires_s;
    int rc = tls_pair_load(t->cert_file, t->key_file, &ctx, &expires_s, err);
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&t->lock);
    SSL_CTX *before = t->ctx;
    t->ctx = ctx;
    pthread_mutex_unlock(&t->lock);
    SSL_CTX_free(before);
    atomic_store(&t->expires_s, expires_s);
    metric_set(metric_get(M_tls_certificate_expires_seconds, NULL), expires_s);
    return 0;
}

int tls_new(const char *cert_file, const char *key_file, struct tls **out, struct error *err)
{
    struct tls *t = xcalloc(1, sizeof *t);
    t->cert_file = xstrdup(cert_file);
    t->key_file = xstrdup(key_file);
    pthread_mutex_init(&t->lock, NULL);
    note_stamps(t);
    int rc = load(t, err);
    if (rc != 0)
        tls_free(t);
    else
        *out = t;
    return rc;
}

void tls_free(struct tls *t)
{
    if (t == NULL)
        return;
    SSL_CTX_free(t->ctx);
    pthread_mutex_destroy(&t->lock);
    free(t->cert_file);
    free(t->key_file);
    free(t);
}

static void warn_once_a_day(struct tls *t)
{
    int64_t now_s = time(NULL);
    _cleanup_free_ char *text = now_s - t->warned_s >= DAY_S ? tls_warning(t) : NULL;
    if (text == NULL)
        return;
    t->warned_s = now_s;
    log_warn("renew the certificate", lstr("why", text));
}

static void load_again(struct tls *t)
{
    struct error err = ERROR_INIT;
    if (load(t, &err) != 0)
        log_error("certificate not taken: the one before stays", lerr(&err));
    else
        log_info("certificate loaded", lstr("file", t->cert_file),
                 li64("expires_s", tls_expires_s(t)));
}

void tls_renew(struct tls *t, bool always)
{
    if (note_stamps(t) || always)
        load_again(t);
    warn_once_a_day(t);
}

SSL *tls_accept(struct tls *t)
{
    pthread_mutex_lock(&t->lock);
    SSL *ssl = SSL_new(t->ctx);
    pthread_mutex_unlock(&t->lock);
    if (ssl != NULL)
        SSL_set_accept_state(ssl);
    return ssl;
}

int64_t tls_expires_s(const struct tls *t)
{
    return atomic_load(&t->expires_s);
}

uint64_t tls_left_s(const struct tls *t)
{
    if (t == NULL)
        return 0;
    int64_t left_s = tls_expires_s(t) - (int64_t)time(NULL);
    return left_s > 0 ? (uint64_t)left_s : 1;
}

char *tls_warning(const struct tls *t)
{
    int64_t left_s = tls_expires_s(t) - (int64_t)time(NULL);
    if (left_s >= TLS_EXPIRES_SOON_S)
        return NULL;
    if (left_s <= 0)
        return xprintf("the certificate '%s' has expired: replace it", t->cert_file);
    return xprintf("the certificate '%s' expires in %lld h: renew it", t->cert_file,
                   (long long)left_s / 3600);
}
