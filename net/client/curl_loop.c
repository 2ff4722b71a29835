#include "net/client/curl_loop.h"

#include <assert.h>
#include <uv.h>

#include "common/mem.h"

/* Kept open after their transfer.  curl's own limit shrinks with the number of transfers that run,
 * so that every lull would close what the next burst needs. */
enum { CONNECTIONS_KEPT_MAX = 256 };

struct curl_loop {
    uv_loop_t *uv;
    CURLM *multi;
    uv_timer_t *timer; /* frees itself when closed */
    const struct curl_loop_ops *ops;
    void *arg;
};

/* A socket that curl wants to be watched.  It ends with its uv handle. */
struct watched {
    uv_poll_t poll;
    struct curl_loop *owner;
    curl_socket_t fd;
};

static void free_handle(uv_handle_t *h)
{
    free(h);
}

static void free_watched(uv_handle_t *h)
{
    free(h->data);
}

static void collect_finished(struct curl_loop *c)
{
    int left = 0;
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left)) != NULL;) {
        if (m->msg != CURLMSG_DONE)
            continue;
        /* The message dies with the handle's leaving. */
        CURL *easy = m->easy_handle;
        CURLcode result = m->data.result;
        curl_multi_remove_handle(c->multi, easy);
        c->ops->finished(c->arg, easy, result);
    }
}

static void act(struct curl_loop *c, curl_socket_t fd, int events)
{
    int running = 0;
    curl_multi_socket_action(c->multi, fd, events, &running);
    collect_finished(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct watched *w = poll->data;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    if ((events & UV_READABLE) != 0)
        flags |= CURL_CSELECT_IN;
    if ((events & UV_WRITABLE) != 0)
        flags |= CURL_CSELECT_OUT;
    act(w->owner, w->fd, flags);
}

static void on_timer(uv_timer_t *timer);

/* The delay counts from now, not from the loop's last wake-up: a timer that fires before curl's own
 * clock says so is lost, for curl asks only once for each point in time. */
static void timer_start(struct curl_loop *c, long timeout_ms)
{
    uv_update_time(c->uv);
    uv_timer_start(c->timer, on_timer, (uint64_t)timeout_ms, 0);
}

static int want_timer(CURLM *multi, long timeout_ms, void *arg)
{
    (void)multi;
    struct curl_loop *c = arg;
    if (timeout_ms < 0)
        uv_timer_stop(c->timer);
    else
        timer_start(c, timeout_ms);
    return 0;
}

/* The two clocks are read at different moments, so it may be early by a millisecond all the same:
 * then curl is asked what it still waits for. */
static void on_timer(uv_timer_t *timer)
{
    struct curl_loop *c = timer->data;
    long left_ms = -1;
    act(c, CURL_SOCKET_TIMEOUT, 0);
    if (!uv_is_active((uv_handle_t *)timer) && curl_multi_timeout(c->multi, &left_ms) == CURLM_OK &&
        left_ms >= 0)
        timer_start(c, left_ms > 0 ? left_ms : 1);
}

static struct watched *watch(struct curl_loop *c, curl_socket_t fd)
{
    struct watched *w = xcalloc(1, sizeof *w);
    w->owner = c;
    w->fd = fd;
    w->poll.data = w;
    if (uv_poll_init_socket(c->uv, &w->poll, fd) != 0) {
        free(w);
        return NULL;
    }
    curl_multi_assign(c->multi, fd, w);
    return w;
}

static void unwatch(struct curl_loop *c, struct watched *w)
{
    uv_poll_stop(&w->poll);
    curl_multi_assign(c->multi, w->fd, NULL);
    uv_close((uv_handle_t *)&w->poll, free_watched);
}

static int want_socket(CURL *easy, curl_socket_t fd, int action, void *arg, void *socket_arg)
{
    struct curl_loop *c = arg;
    struct watched *w = socket_arg;
    if (action == CURL_POLL_REMOVE) {
        if (w != NULL)
            unwatch(c, w);
        return 0;
    }
    if (w == NULL && (w = watch(c, fd)) == NULL)
        return -1;
    c->ops->socket(c->arg, easy, fd);
    int events = (action & CURL_POLL_IN) != 0 ? UV_READABLE : 0;
    if ((action & CURL_POLL_OUT) != 0)
        events |= UV_WRITABLE;
    return uv_poll_start(&w->poll, events, on_poll) == 0 ? 0 : -1;
}

int curl_loop_new(struct loop *loop, unsigned connections_per_host_max,
                  const struct curl_loop_ops *ops, void *arg, struct curl_loop **out,
                  struct error *err)
{
    CURLM *multi = curl_multi_init();
    if (multi == NULL)
        return error_set(err, E_NOMEM, "no memory for the HTTP client");
    struct curl_loop *c = xcalloc(1, sizeof *c);
    *c = (struct curl_loop){.uv = loop_uv(loop),
                            .multi = multi,
                            .timer = xcalloc(1, sizeof(uv_timer_t)),
                            .ops = ops,
                            .arg = arg};
    uv_timer_init(c->uv, c->timer);
    c->timer->data = c;
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, want_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, c);
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT_MAX);
    curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)connections_per_host_max);
    *out = c;
    return 0;
}

void curl_loop_free(struct curl_loop *c)
{
    if (c == NULL)
        return;
    curl_multi_cleanup(c->multi); /* unwatches what is left through want_socket */
    uv_timer_stop(c->timer);
    uv_close((uv_handle_t *)c->timer, free_handle);
    free(c);
}

int curl_loop_add(struct curl_loop *c, CURL *easy, struct error *err)
{
    CURLMcode code = curl_multi_add_handle(c->multi, easy);
    if (code != CURLM_OK)
        return error_set(err, E_NET, "start a transfer: %s", curl_multi_strerror(code));
    return 0;
}

void curl_loop_remove(struct curl_loop *c, CURL *easy)
{
    curl_multi_remove_handle(c->multi, easy);
}
