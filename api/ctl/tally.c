#include "api/ctl/tally.h"

#include <pthread.h>

#include "api/ctl/interrupt.h"
#include "api/failure.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/mem.h"

struct tally {
    const struct ctl *ctl;
    const char *verb;
    struct progress *progress;
    pthread_mutex_t lock; /* everything below */
    uint64_t done;
    uint64_t bytes;
    uint64_t failed;
    uint64_t skipped;
    uint64_t kept;
    uint64_t removed;
    const char *kept_words;
    const char *done_words, *removed_words;
    json_t *list;
    int code; /* of the failures, if it is one; else EXIT_PARTIAL */
};

struct tally *tally_new(const struct ctl *ctl, const char *verb, struct progress *progress)
{
    struct tally *t = xcalloc(1, sizeof *t);
    t->ctl = ctl;
    t->verb = verb;
    t->kept_words = "existed already";
    t->done_words = "done";
    t->removed_words = "removed";
    t->progress = progress;
    t->list = json_array();
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void tally_done(struct tally *t, uint64_t bytes)
{
    pthread_mutex_lock(&t->lock);
    t->done++;
    t->bytes += bytes;
    pthread_mutex_unlock(&t->lock);
}

static void tally_list(struct tally *t, const char *name, const struct dfc_error *err)
{
    if (json_array_size(t->list) >= TALLY_LISTED)
        return;
    json_t *one = json_pack("{s:s%, s:s, s:s}", "name", name, strlen(name), "code",
                            err->code[0] != '\0' ? err->code : "failed", "message", err->message);
    if (one == NULL) /* a name that is no UTF-8 cannot stand in JSON */
        one = json_pack("{s:n, s:s, s:s}", "name", "code", "invalid_name", "message", err->message);
    json_array_append_new(t->list, one);
}

void tally_fail(struct tally *t, const char *name, const struct dfc_error *err)
{
    int code = exit_of_error(err);
    if (err->result == DFC_CANCELLED) {
        tally_skip(t);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->code = t->failed == 0 || t->code == code ? code : EXIT_PARTIAL;
    t->failed++;
    tally_list(t, name, err);
    if (!t->ctl->json) {
        _cleanup_free_ char *what = xprintf("%s '%s'", t->verb, name);
        progress_clear(t->progress);
        ctl_fail(t->ctl, err, what);
    }
    pthread_mutex_unlock(&t->lock);
}

void tally_fail_common(struct tally *t, const char *name, const struct error *err)
{
    struct dfc_error e;
    failure_common(&e, DFC_LOCAL, err);
    tally_fail(t, name, &e);
}

void tally_nothing(struct tally *t, const char *name, const char *why)
{
    struct error e;
    error_set(&e, E_NOTHING_MATCHED, "%s (--allow-empty accepts that)", why);
    tally_fail_common(t, name, &e);
}

void tally_matched(struct tally *t, const char *name, uint64_t count)
{
    pthread_mutex_lock(&t->lock);
    progress_clear(t->progress);
    ctl_remark(t->ctl, "dfcctl: %llu objects match '%s'", (unsigned long long)count, name);
    pthread_mutex_unlock(&t->lock);
}

void tally_kept(struct tally *t)
{
    pthread_mutex_lock(&t->lock);
    t->kept++;
    pthread_mutex_unlock(&t->lock);
}

void tally_removed(struct tally *t)
{
    pthread_mutex_lock(&t->lock);
    t->removed++;
    pthread_mutex_unlock(&t->lock);
}

void tally_name_kept(struct tally *t, const char *words)
{
    t->kept_words = words;
}

void tally_is_dry(struct tally *t)
{
    t->done_words = "to send";
    t->removed_words = "to remove";
}

uint64_t tally_count(struct tally *t)
{
    pthread_mutex_lock(&t->lock);
    uint64_t count = t->done + t->failed + t->skipped + t->kept;
    pthread_mutex_unlock(&t->lock);
    return count;
}

bool tally_is_whole(struct tally *t)
{
    pthread_mutex_lock(&t->lock);
    bool whole = t->failed + t->skipped == 0;
    pthread_mutex_unlock(&t->lock);
    return whole;
}

bool tally_hopeless(struct tally *t)
{
    pthread_mutex_lock(&t->lock);
    bool hopeless = t->done + t->kept + t->removed == 0 && t->failed > TALLY_HOPELESS;
    pthread_mutex_unlock(&t->lock);
    return hopeless || interrupted();
}

void tally_skip(struct tally *t)
{
    pthread_mutex_lock(&t->lock);
    t->skipped++;
    pthread_mutex_unlock(&t->lock);
}

static int tally_code(const struct tally *t)
{
    if (interrupted())
        return EXIT_INTERRUPTED;
    if (t->failed == 0)
        return EXIT_OK;
    return t->done + t->kept + t->removed == 0 ? t->code : EXIT_PARTIAL;
}

static void tally_print(const struct tally *t)
{
    char size[24];
    if (t->ctl->json) {
        ctl_print_json(t->ctl,
                       json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "action", t->verb,
                                 "done", (json_int_t)t->done, "bytes", (json_int_t)t->bytes,
                                 "existed", (json_int_t)t->kept, "removed", (json_int_t)t->removed,
                                 "failed_count", (json_int_t)t->failed, "not_tried",
                                 (json_int_t)t->skipped, "failed", t->list));
        return;
    }
    _cleanup_(buf_done)
    struct buf text = BUF_INIT;
    const struct {
        uint64_t count;
        const char *what;
    } rest[] = {{t->kept, t->kept_words},
                {t->removed, t->removed_words},
                {t->failed, "failed"},
                {t->skipped, "not tried"}};
    buf_printf(&text, "%s: %llu %s", t->verb, (unsigned long long)t->done, t->done_words);
    if (t->bytes > 0)
        buf_printf(&text, " (%s)", ctl_size(t->ctl, t->bytes, size));
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        if (rest[i].count > 0)
            buf_printf(&text, ", %llu %s", (unsigned long long)rest[i].count, rest[i].what);
    }
    ctl_say(t->ctl, "%s", buf_str(&text));
}

int tally_end(struct tally *t)
{
    int code = tally_code(t);
    tally_print(t);
    json_decref(t->list);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return code;
}
