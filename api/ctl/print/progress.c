#include "api/ctl/print/progress.h"

#include <pthread.h>

#include "common/clock.h"
#include "common/mem.h"
#include "common/parse.h"

#define REDRAW_MS 100
#define BAR_CELLS 24

struct progress {
    bool on;
    FILE *out;
    const char *title;
    pthread_mutex_t lock; /* everything below */
    uint64_t begun_ms;
    uint64_t drawn_ms;
    uint64_t bytes, total_bytes;
    uint64_t things, total_things;
};

struct progress *progress_new(const struct ctl *ctl, const char *title)
{
    struct progress *p = xcalloc(1, sizeof *p);
    p->on = ctl->err_tty && !ctl->quiet && !ctl->json;
    p->out = ctl->err;
    p->title = title;
    p->begun_ms = clock_ms();
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void wipe(struct progress *p)
{
    if (p->drawn_ms != 0)
        fputs("\r\033[K", p->out);
    p->drawn_ms = 0;
    fflush(p->out);
}

void progress_clear(struct progress *p)
{
    pthread_mutex_lock(&p->lock);
    wipe(p);
    pthread_mutex_unlock(&p->lock);
}

void progress_free(struct progress *p)
{
    wipe(p);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void draw_bar(FILE *out, const char *title, double percent)
{
    int filled = (int)(percent / 100 * BAR_CELLS);
    fprintf(out, "\r\033[K%s [", title);
    for (int i = 0; i < BAR_CELLS; i++)
        fputc(i < filled ? '#' : '.', out);
    fprintf(out, "] %3.0f%%", percent);
}

static void draw(struct progress *p, uint64_t now)
{
    char done[16], total[16], rate[16], eta[16];
    uint64_t spent_ms = now - p->begun_ms > 0 ? now - p->begun_ms : 1;
    uint64_t per_s = (uint64_t)((double)p->bytes * 1000 / (double)spent_ms);
    uint64_t left = p->total_bytes > p->bytes ? p->total_bytes - p->bytes : 0;
    format_size(p->bytes, done);
    format_size(per_s, rate);
    if (p->total_bytes > 0) {
        double percent = 100.0 * (double)p->bytes / (double)p->total_bytes;
        draw_bar(p->out, p->title, percent < 100 ? percent : 100);
        fprintf(p->out, " %s/%s %s/s", done, format_size(p->total_bytes, total), rate);
    } else {
        fprintf(p->out, "\r\033[K%s %s %s/s", p->title, done, rate);
    }
    if (p->total_things > 1)
        fprintf(p->out, " %llu/%llu", (unsigned long long)p->things,
                (unsigned long long)p->total_things);
    if (per_s > 0 && left >= per_s)
        fprintf(p->out, " ETA %s", format_duration(left / per_s * 1000, eta));
    fflush(p->out);
}

static bool due(struct progress *p, uint64_t now)
{
    if (!p->on || (p->drawn_ms != 0 && now - p->drawn_ms < REDRAW_MS))
        return false;
    p->drawn_ms = now;
    return true;
}

void progress_total(struct progress *p, uint64_t bytes, uint64_t things)
{
    pthread_mutex_lock(&p->lock);
    p->total_bytes = bytes;
    p->total_things = things;
    pthread_mutex_unlock(&p->lock);
}

void progress_add(struct progress *p, int64_t bytes, uint64_t things)
{
    uint64_t now = clock_ms();
    pthread_mutex_lock(&p->lock);
    p->bytes += (uint64_t)bytes;
    p->things += things;
    if (due(p, now))
        draw(p, now);
    pthread_mutex_unlock(&p->lock);
}

void progress_show(struct progress *p, double percent, const char *text)
{
    pthread_mutex_lock(&p->lock);
    if (due(p, clock_ms())) {
        draw_bar(p->out, p->title, percent);
        fprintf(p->out, " %s", text);
        fflush(p->out);
    }
    pthread_mutex_unlock(&p->lock);
}

void progress_part_moved(void *context, uint64_t done, uint64_t total)
{
    struct progress_part *part = context;
    if (part->alone && total != UINT64_MAX)
        progress_total(part->all, total, 1);
    progress_add(part->all, (int64_t)(done - part->done), 0);
    part->done = done;
}
