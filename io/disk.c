/* Submitters append to a list under a lock and wake the thread, which takes the whole list.
 *
 * With the ring, the wake-up is an eventfd that the ring writes to as well, so that one wait covers
 * new work and finished work.  Without it, the thread waits on a condition and runs one operation
 * after the other with plain calls.
 *
 * `outstanding` counts from submission to the return of done(); it bounds the submitters, and the
 * end waits until it is zero.  An op has at most one entry in the ring, so a ring of `depth`
 * entries never runs full. */
#include "io/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault.h"
#include "common/log.h"
#include "common/mem.h"
#include "io/meter.h"
#include "io/thread.h"

enum {
    WRITE_BACK_FLAGS =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER,
};

struct disk_list {
    struct disk_op *first;
    struct disk_op **last;
};

struct disk {
    pthread_t thread;
    char backend[96];
    unsigned depth;
    struct meter *meter; /* or NULL */

    /* The disk's thread only. */
    bool ring_used;
    struct io_uring ring;
    int wake_fd;
    struct disk_list ready; /* to be started; what done() submitted comes here */

    pthread_mutex_t lock; /* guards what follows; a leaf */
    pthread_cond_t room;  /* for submitters */
    pthread_cond_t work;  /* for the thread when there is no ring */
    struct disk_list queue;
    unsigned outstanding;
    bool ending;
};

struct disk_wait {
    sem_t ended;
    int result;
};

/* An errno, or FAULT_LEFT_OUT. */
static int disk_op_fault(const struct disk_op *op)
{
    static const char *const points[] = {
        [DISK_READ] = "disk.read",       [DISK_WRITE] = "disk.write",
        [DISK_WRITE_BACK] = "disk.sync", [DISK_FDATASYNC] = "disk.sync",
        [DISK_FSYNC] = "disk.sync",      [DISK_CALL] = NULL,
    };
    int errnum = points[op->kind] != NULL ? fault_errno(points[op->kind]) : 0;
    return errnum == 0 && op->point != NULL ? fault_step(op->point) : errnum;
}

static void disk_list_init(struct disk_list *list)
{
    list->first = NULL;
    list->last = &list->first;
}

static void disk_list_append(struct disk_list *list, struct disk_op *op)
{
    op->next_ = NULL;
    *list->last = op;
    list->last = &op->next_;
}

static struct disk_op *disk_list_take(struct disk_list *list)
{
    struct disk_op *op = list->first;
    if (op != NULL && (list->first = op->next_) == NULL)
        list->last = &list->first;
    return op;
}

static void disk_list_move(struct disk_list *from, struct disk_list *to)
{
    for (struct disk_op *op; (op = disk_list_take(from)) != NULL;)
        disk_list_append(to, op);
}

/* --- submitting ------------------------------------------------------------------------------- */

static void disk_wake(struct disk *d)
{
    if (!d->ring_used) {
        pthread_cond_signal(&d->work);
        return;
    }
    uint64_t one = 1;
    ssize_t n = write(d->wake_fd, &one, sizeof one);
    assert(n == sizeof one); /* an eventfd refuses only near 2^64 */
    (void)n;
}

static void disk_op_init(const struct disk *d, struct disk_op *op, struct disk_wait *wait)
{
    assert(op->len <= INT_MAX);
    op->moved_ = 0;
    op->wait_ = wait;
    op->began_us_ = d->meter != NULL ? clock_us() : 0;
    meter_enter(d->meter);
}

static void disk_enqueue(struct disk *d, struct disk_op *op)
{
    assert(!pthread_equal(pthread_self(), d->thread));
    pthread_mutex_lock(&d->lock);
    while (d->outstanding >= d->depth)
        pthread_cond_wait(&d->room, &d->lock);
    d->outstanding++;
    bool was_empty = d->queue.first == NULL;
    disk_list_append(&d->queue, op);
    if (was_empty)
        disk_wake(d);
    pthread_mutex_unlock(&d->lock);
}

void disk_submit(struct disk *d, struct disk_op *op)
{
    disk_op_init(d, op, NULL);
    disk_enqueue(d, op);
}

void disk_submit_next(struct disk *d, struct disk_op *op)
{
    assert(pthread_equal(pthread_self(), d->thread));
    disk_op_init(d, op, NULL);
    pthread_mutex_lock(&d->lock);
    d->outstanding++; /* the ended one still counts, too, until its done() returns */
    pthread_mutex_unlock(&d->lock);
    disk_list_append(&d->ready, op);
}

int disk_run(struct disk *d, struct disk_op *op)
{
    struct disk_wait wait = {0};
    sem_init(&wait.ended, 0, 0);
    disk_op_init(d, op, &wait);
    disk_enqueue(d, op);
    while (sem_wait(&wait.ended) != 0)
        ; /* EINTR is the only failure of an initialised semaphore */
    sem_destroy(&wait.ended);
    return wait.result;
}

void disk_write_begin(int fd)
{
    (void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

/* --- running ---------------------------------------------------------------------------------- */

/* A call is measured by who makes it. */
static void disk_op_measure(const struct disk *d, const struct disk_op *op)
{
    static const enum meter_op ops[] = {
        [DISK_READ] = METER_READ,      [DISK_WRITE] = METER_WRITE, [DISK_WRITE_BACK] = METER_SYNC,
        [DISK_FDATASYNC] = METER_SYNC, [DISK_FSYNC] = METER_SYNC,
    };
    if (op->kind != DISK_CALL)
        meter_count(d->meter, ops[op->kind], op->began_us_, op->moved_);
    meter_leave(d->meter);
}

static void disk_op_end(struct disk *d, struct disk_op *op, int result)
{
    disk_op_measure(d, op);
    if (op->wait_ != NULL) {
        op->wait_->result = result;
        sem_post(&op->wait_->ended);
    } else {
        op->done(op, result);
    }
    pthread_mutex_lock(&d->lock);
    d->outstanding--;
    pthread_cond_signal(&d->room);
    pthread_mutex_unlock(&d->lock);
}

/* One step of an op has given `res`, as the system calls do.  True: the op has ended. */
static bool disk_op_advance(struct disk *d, struct disk_op *op, int res)
{
    if (res == -EINTR || res == -EAGAIN)
        return false;
    bool moves = op->kind == DISK_READ || op->kind == DISK_WRITE;
    if (res < 0 || !moves) {
        disk_op_end(d, op, res);
        return true;
    }
    op->moved_ += (size_t)res;
    if (op->moved_ < op->len && res > 0)
        return false;
    bool stuck = op->kind == DISK_WRITE && op->moved_ < op->len;
    disk_op_end(d, op, stuck ? -EIO : (int)op->moved_);
    return true;
}

static int disk_op_plain(struct disk_op *op)
{
    char *at = (char *)op->data + op->moved_;
    size_t len = op->len - op->moved_;
    off_t offset = (off_t)(op->offset + op->moved_);
    ssize_t n = 0;
    switch (op->kind) {
    case DISK_READ:
        n = pread(op->fd, at, len, offset);
        break;
    case DISK_WRITE:
        n = pwrite(op->fd, at, len, offset);
        break;
    case DISK_WRITE_BACK:
        n = sync_file_range(op->fd, 0, 0, WRITE_BACK_FLAGS);
        break;
    case DISK_FDATASYNC:
        n = fdatasync(op->fd);
        break;
    case DISK_FSYNC:
        n = fsync(op->fd);
        break;
    case DISK_CALL:
        return op->call(op);
    }
    return n < 0 ? -errno : (int)n;
}

static void disk_op_prepare(struct disk *d, struct disk_op *op)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&d->ring);
    assert(sqe != NULL);
    char *at = op->data;
    unsigned len = (unsigned)(op->len - op->moved_);
    switch (op->kind) {
    case DISK_READ:
        io_uring_prep_read(sqe, op->fd, at + op->moved_, len, op->offset + op->moved_);
        break;
    case DISK_WRITE:
        io_uring_prep_write(sqe, op->fd, at + op->moved_, len, op->offset + op->moved_);
        break;
    case DISK_WRITE_BACK:
        io_uring_prep_sync_file_range(sqe, op->fd, 0, 0, WRITE_BACK_FLAGS);
        break;
    case DISK_FDATASYNC:
        io_uring_prep_fsync(sqe, op->fd, IORING_FSYNC_DATASYNC);
        break;
    case DISK_FSYNC:
        io_uring_prep_fsync(sqe, op->fd, 0);
        break;
    case DISK_CALL:
        abort(); /* a call does not go to the ring */
    }
    io_uring_sqe_set_data(sqe, op);
}

/* Everything that is ready runs, or goes to the ring; what the ends submit comes right after. */
static void disk_start_ready(struct disk *d)
{
    for (struct disk_op *op; (op = disk_list_take(&d->ready)) != NULL;) {
        int fault = disk_op_fault(op);
        if (fault == FAULT_LEFT_OUT) {
            disk_op_end(d, op, 0);
        } else if (fault != 0) {
            disk_op_end(d, op, -fault);
        } else if (d->ring_used && op->kind != DISK_CALL) {
            disk_op_prepare(d, op);
        } else {
            while (!disk_op_advance(d, op, disk_op_plain(op)))
                ;
        }
    }
}

static void disk_take_queue(struct disk *d)
{
    pthread_mutex_lock(&d->lock);
    disk_list_move(&d->queue, &d->ready);
    pthread_mutex_unlock(&d->lock);
}

static bool disk_ended(struct disk *d)
{
    pthread_mutex_lock(&d->lock);
    bool ended = d->ending && d->outstanding == 0;
    pthread_mutex_unlock(&d->lock);
    return ended;
}

static void *disk_main_plain(void *arg)
{
    struct disk *d = arg;
    while (!disk_ended(d)) {
        pthread_mutex_lock(&d->lock);
        while (d->queue.first == NULL && !d->ending)
            pthread_cond_wait(&d->work, &d->lock);
        pthread_mutex_unlock(&d->lock);
        disk_take_queue(d);
        disk_start_ready(d);
    }
    return NULL;
}

static void disk_reap(struct disk *d)
{
    struct io_uring_cqe *cqe;
    while (io_uring_peek_cqe(&d->ring, &cqe) == 0) {
        struct disk_op *op = io_uring_cqe_get_data(cqe);
        int res = cqe->res;
        io_uring_cqe_seen(&d->ring, cqe);
        if (!disk_op_advance(d, op, res))
            disk_list_append(&d->ready, op);
    }
}

/* EAGAIN and EBUSY leave entries in the ring, which the next round submits. */
static void disk_ring_submit(struct disk *d)
{
    int rc = io_uring_submit(&d->ring);
    assert(rc >= 0 || rc == -EINTR || rc == -EAGAIN || rc == -EBUSY);
    (void)rc;
}

static void disk_ring_wait(struct disk *d)
{
    uint64_t count;
    ssize_t n = read(d->wake_fd, &count, sizeof count);
    assert(n == sizeof count || errno == EINTR);
    (void)n;
}

static void *disk_main_ring(void *arg)
{
    struct disk *d = arg;
    for (;;) {
        disk_take_queue(d);
        disk_start_ready(d);
        if (disk_ended(d))
            return NULL;
        disk_ring_submit(d);
        if (d->ready.first == NULL && io_uring_sq_ready(&d->ring) == 0)
            disk_ring_wait(d);
        disk_reap(d);
    }
}

/* --- opening and closing ---------------------------------------------------------------------- */

static bool disk_ring_can(struct io_uring *ring)
{
    struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
    bool can = probe != NULL && io_uring_opcode_supported(probe, IORING_OP_READ) &&
               io_uring_opcode_supported(probe, IORING_OP_WRITE) &&
               io_uring_opcode_supported(probe, IORING_OP_FSYNC) &&
               io_uring_opcode_supported(probe, IORING_OP_SYNC_FILE_RANGE);
    if (probe != NULL)
        io_uring_free_probe(probe);
    return can;
}

/* What a ring is refused for where the kernel counts it as locked memory (before 5.12). */
static void say_locked_memory(char *why, size_t why_size)
{
    struct rlimit limit;
    size_t used = strlen(why);
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        snprintf(why + used, why_size - used,
                 "; the limit of locked memory is %llu bytes: raise it (LimitMEMLOCK, ulimit -l)",
                 (unsigned long long)limit.rlim_cur);
}

/* The ring and its eventfd, or 0 and `why`. */
static bool disk_ring_open(struct disk *d, char *why, size_t why_size)
{
    int rc = io_uring_queue_init(d->depth, &d->ring, 0);
    if (rc != 0) {
        char reason[64];
        snprintf(why, why_size, "io_uring: %s", strerror_r(-rc, reason, sizeof reason));
        if (rc == -ENOMEM)
            say_locked_memory(why, why_size);
        return false;
    }
    d->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (d->wake_fd >= 0 && disk_ring_can(&d->ring) &&
        io_uring_register_eventfd(&d->ring, d->wake_fd) == 0)
        return true;
    if (d->wake_fd >= 0)
        close(d->wake_fd);
    io_uring_queue_exit(&d->ring);
    snprintf(why, why_size, "io_uring lacks what is needed");
    return false;
}

static void disk_done(struct disk *d)
{
    if (d->ring_used) {
        io_uring_queue_exit(&d->ring);
        close(d->wake_fd);
    }
    pthread_cond_destroy(&d->room);
    pthread_cond_destroy(&d->work);
    pthread_mutex_destroy(&d->lock);
    meter_unref(d->meter);
    free(d);
}

static int disk_open_with(const char *thread_name, unsigned depth, bool want_ring,
                          struct disk **out, struct error *err)
{
    assert(depth > 0);
    struct disk *d = xcalloc(1, sizeof *d);
    d->depth = depth;
    disk_list_init(&d->ready);
    disk_list_init(&d->queue);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->room, NULL);
    pthread_cond_init(&d->work, NULL);
    char why[256] = "io_uring is switched off";
    d->ring_used = want_ring && disk_ring_open(d, why, sizeof why);
    if (d->ring_used)
        snprintf(d->backend, sizeof d->backend, "io_uring");
    else
        snprintf(d->backend, sizeof d->backend, "threads (%s)", why);
    int rc = thread_start(thread_name, d->ring_used ? disk_main_ring : disk_main_plain, d,
                          &d->thread, err);
    if (rc != 0)
        return disk_done(d), rc;
    *out = d;
    return 0;
}

int disk_open(const char *thread_name, unsigned depth, struct disk **out, struct error *err)
{
    return disk_open_with(thread_name, depth, true, out, err);
}

int disk_open_plain(const char *thread_name, unsigned depth, struct disk **out, struct error *err)
{
    return disk_open_with(thread_name, depth, false, out, err);
}

void disk_measure(struct disk *d, struct meter *m)
{
    d->meter = meter_ref(m);
}

void disk_free(struct disk *d)
{
    if (d == NULL)
        return;
    pthread_mutex_lock(&d->lock);
    d->ending = true;
    disk_wake(d);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    disk_done(d);
}

const char *disk_backend(const struct disk *d)
{
    return d->backend;
}
