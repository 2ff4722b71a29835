#include "tests/sim/scale_sort_threads.h"

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "io/thread.h"

#define INTERVAL_MS 200

struct one {
    unsigned long long number;
    unsigned long long cpu_ns;
    char name[16];
};

struct threads {
    pthread_t thread;
    pthread_mutex_t lock; /* guards `ended` */
    pthread_cond_t changed;
    bool ended;
    bool running;
    struct one *all;
    size_t count;
};

/* One line of a file of a thread; false: the thread has ended. */
static bool read_line(unsigned long long number, const char *file, char *out, size_t len)
{
    _cleanup_free_ char *path = xprintf("/proc/self/task/%llu/%s", number, file);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    bool read = fgets(out, (int)len, f) != NULL;
    fclose(f);
    out[read ? strcspn(out, "\n") : 0] = '\0';
    return read;
}

static struct one *find(struct threads *t, unsigned long long number)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->all[i].number == number)
            return &t->all[i];
    }
    t->all = xrealloc(t->all, (t->count + 1) * sizeof *t->all);
    t->all[t->count] = (struct one){.number = number};
    return &t->all[t->count++];
}

static void look(struct threads *t)
{
    DIR *dir = opendir("/proc/self/task");
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        char text[128];
        unsigned long long number = strtoull(e->d_name, NULL, 10);
        if (number == 0 || !read_line(number, "schedstat", text, sizeof text))
            continue;
        struct one *o = find(t, number);
        o->cpu_ns = strtoull(text, NULL, 10);
        if (read_line(number, "comm", text, sizeof text))
            snprintf(o->name, sizeof o->name, "%.15s", text);
    }
    if (dir != NULL)
        closedir(dir);
}

static bool wait_or_end(struct threads *t)
{
    const struct timespec until = clock_after(INTERVAL_MS);
    pthread_mutex_lock(&t->lock);
    if (!t->ended)
        pthread_cond_timedwait(&t->changed, &t->lock, &until);
    bool ended = t->ended;
    pthread_mutex_unlock(&t->lock);
    return ended;
}

static void *look_again(void *arg)
{
    struct threads *t = arg;
    while (!wait_or_end(t))
        look(t);
    return NULL;
}

static void end(struct threads *t)
{
    if (!t->running)
        return;
    pthread_mutex_lock(&t->lock);
    t->ended = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    t->running = false;
}

struct threads *threads_new(void)
{
    _cleanup_(threads_freep)
    struct threads *t = xcalloc(1, sizeof *t);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    look(t);
    t->running = t->count > 0 && thread_start("looks", look_again, t, &t->thread, NULL) == 0;
    return t->running ? steal(t) : NULL;
}

void threads_free(struct threads *t)
{
    if (t == NULL)
        return;
    end(t);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t->all);
    free(t);
}

static int busier(const void *left, const void *right)
{
    const struct one *a = left;
    const struct one *b = right;
    return (a->cpu_ns < b->cpu_ns) - (a->cpu_ns > b->cpu_ns);
}

void threads_print(struct threads *t, unsigned most, unsigned long long records)
{
    end(t);
    qsort(t->all, t->count, sizeof *t->all, busier);
    printf("%-16s %9s %12s\n", "busiest threads", "CPU s", "ns a record");
    for (size_t i = 0; i < t->count && i < most; i++)
        printf("%-16s %9.1f %12.1f\n", t->all[i].name, (double)t->all[i].cpu_ns / 1e9,
               (double)t->all[i].cpu_ns / (double)records);
}
