#include "mount/tcmu/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "mount/tcmu/ring.h"

struct server {
    struct server_options options;
    int stop_fd, failed_fd; /* eventfds: to the listener; to the caller */
    pthread_mutex_t lock;   /* the next four */
    pthread_cond_t more;
    struct ring ring;
    struct error failed;
    bool stopping;
    pthread_t *threads; /* the first is the listener */
    unsigned count;
};

static void tell_kernel(const struct server *s)
{
    const int32_t any = 0;
    if (write(s->options.uio, &any, sizeof any) != (ssize_t)sizeof any)
        log_error("the kernel is not told of replies", lstr("error", strerror(errno)));
}

/* Contents of the disk.  They are copied to the ring's pages, which need not be side by side. */
static void read_contents(struct server *s, const struct ring_command *c, void *buffer,
                          struct scsi_reply *reply)
{
    const size_t size = reply->size < c->room ? (size_t)reply->size : c->room;
    int rc = s->options.read(s->options.context, reply->offset, size, buffer);
    if (rc == 0) {
        ring_put(&s->ring, c, buffer, size);
        return;
    }
    log_error("the disk cannot be read", lu64("offset", reply->offset), lu64("bytes", size),
              lstr("error", strerror(-rc)));
    scsi_unreadable(reply);
}

static void answer(struct server *s, const struct ring_command *c, void *buffer,
                   struct scsi_reply *reply)
{
    if (c->lost) {
        *reply = (struct scsi_reply){.status = SCSI_BUSY};
        return;
    }
    scsi_answer(&s->options.disk, c->cdb, reply);
    if (reply->status == SCSI_GOOD && reply->size > 0)
        read_contents(s, c, buffer, reply);
    else if (reply->status == SCSI_GOOD)
        ring_put(&s->ring, c, reply->data, reply->data_size < c->room ? reply->data_size : c->room);
}

/* The lock is held. */
static void fail(struct server *s, const struct error *e)
{
    if (s->failed.code != 0)
        return;
    s->failed = *e;
    pthread_cond_broadcast(&s->more);
    eventfd_write(s->failed_fd, 1);
}

/* False: the thread ends.  The lock is held. */
static bool take(struct server *s, struct ring_command *c)
{
    while (!s->stopping && s->failed.code == 0) {
        struct error e = ERROR_INIT;
        int rc = ring_take(&s->ring, c, &e);
        if (rc == 1)
            return true;
        if (rc < 0)
            fail(s, &e);
        if (rc == 0 && ring_advance(&s->ring))
            tell_kernel(s); /* of replies that an earlier server has left */
        if (rc == 0)
            pthread_cond_wait(&s->more, &s->lock);
    }
    return false;
}

static void *work(void *context)
{
    struct server *s = context;
    struct ring_command c;
    struct scsi_reply reply;
    void *buffer = xmalloc((size_t)s->options.disk.read_most * SCSI_SECTOR);
    pthread_mutex_lock(&s->lock);
    while (take(s, &c)) {
        pthread_mutex_unlock(&s->lock);
        answer(s, &c, buffer, &reply);
        pthread_mutex_lock(&s->lock);
        ring_reply(&s->ring, &c, &reply);
        const bool moved = ring_advance(&s->ring);
        pthread_mutex_unlock(&s->lock);
        if (moved)
            tell_kernel(s);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    free(buffer);
    return NULL;
}

/* An event of the device: there are commands. */
static int hear(struct server *s, struct error *err)
{
    int32_t events;
    struct pollfd fds[] = {{.fd = s->options.uio, .events = POLLIN},
                           {.fd = s->stop_fd, .events = POLLIN}};
    if (poll(fds, 2, -1) < 0)
        return errno == EINTR ? 0 : error_errno(err, errno, "wait for the device");
    if (fds[0].revents != 0 &&
        read(s->options.uio, &events, sizeof events) != (ssize_t)sizeof events)
        return errno == EINTR ? 0 : error_errno(err, errno, "read the device");
    return 0;
}

static void *listen_always(void *context)
{
    struct server *s = context;
    bool stopping = false;
    while (!stopping) {
        struct error e = ERROR_INIT;
        int rc = hear(s, &e);
        pthread_mutex_lock(&s->lock);
        if (rc != 0)
            fail(s, &e);
        pthread_cond_broadcast(&s->more);
        stopping = s->stopping || s->failed.code != 0;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

static int start_threads(struct server *s, struct error *err)
{
    int failed = 0;
    s->threads = xcalloc(s->options.threads + 1, sizeof *s->threads);
    for (; failed == 0 && s->count < s->options.threads + 1; s->count += failed == 0)
        failed =
            pthread_create(&s->threads[s->count], NULL, s->count == 0 ? listen_always : work, s);
    return s->count > 1 ? 0 : error_errno(err, failed, "start a thread");
}

int server_start(const struct server_options *options, struct server **out, struct error *err)
{
    struct server *s = xcalloc(1, sizeof *s);
    s->options = *options;
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    s->failed_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->more, NULL);
    int rc = s->stop_fd < 0 || s->failed_fd < 0 ? error_errno(err, errno, "eventfd") : 0;
    if (rc == 0)
        rc = ring_open(&s->ring, options->map, options->bytes, err);
    if (rc == 0)
        rc = start_threads(s, err);
    if (rc != 0) {
        server_stop(s);
        return rc;
    }
    tell_kernel(s); /* an earlier server may have moved the tail, and been killed */
    *out = s;
    return 0;
}

int server_failed_fd(const struct server *s)
{
    return s->failed_fd;
}

int server_failure(struct server *s, struct error *err)
{
    pthread_mutex_lock(&s->lock);
    if (s->failed.code != 0)
        *err = s->failed;
    const int rc = s->failed.code;
    pthread_mutex_unlock(&s->lock);
    return rc;
}

void server_stop(struct server *s)
{
    if (s == NULL)
        return;
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->more);
    pthread_mutex_unlock(&s->lock);
    eventfd_write(s->stop_fd, 1);
    for (unsigned i = 0; i < s->count; i++)
        pthread_join(s->threads[i], NULL);
    pthread_cond_destroy(&s->more);
    pthread_mutex_destroy(&s->lock);
    cleanup_close_(&s->stop_fd);
    cleanup_close_(&s->failed_fd);
    free(s->threads);
    free(s);
}
