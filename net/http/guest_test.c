/* Sockets of handlers that an HTTP thread watches. */
#include "net/http/guest.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/mem.h"
#include "net/testing/server_fixture.h"

enum { GUESTS = 3 };

struct watched {
    struct http_request *req;
    int fds[GUESTS];
    struct http_guest *guests[GUESTS];
    size_t ticks;
};

static void leave(struct watched *w)
{
    for (size_t i = 0; i < GUESTS; i++) {
        http_guest_free(w->guests[i]);
        close(w->fds[i]);
    }
}

/* The first takes all others with it, also the one whose turn would be next. */
static void on_tick(void *ctx, uint64_t now_ms)
{
    struct watched *w = ctx;
    (void)now_ms;
    assert_int_equal(w->ticks++, 0);
    leave(w);
    http_reply_empty(w->req, 204);
}

static void no_event(void *ctx, uint32_t events)
{
    (void)ctx, (void)events;
    fail_msg("nothing was written");
}

static void watch(struct http_request *req)
{
    static const struct http_guest_ops ops = {.event = no_event, .tick = on_tick};
    struct watched *w = arena_alloc(http_arena(req), sizeof *w);
    w->req = req;
    for (size_t i = 0; i < GUESTS; i++) {
        w->fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        w->guests[i] = http_guest_new(req, w->fds[i], EPOLLIN, &ops, w);
        assert_non_null(w->guests[i]);
    }
}

static const struct http_route routes[] = {
    {.name = "watch",
     .method = HTTP_GET,
     .pattern = "/watch",
     .nets = NET_PUBLIC,
     .right = RIGHT_READ,
     .begin = watch},
    {.name = NULL},
};

static int setup(void **state)
{
    (void)state;
    struct http_server_config server = fixture_config(NET_PUBLIC);
    server.threads = 1;
    fixture_start(server, routes);
    return 0;
}

static void test_a_tick_in_which_other_guests_leave(void **state)
{
    (void)state;
    struct wire_reply r;
    struct wire w = wire_open(fx.port);
    for (int i = 0; i < 2; i++) {
        wire_get(&w, "GET", "/watch", &r);
        assert_int_equal(r.status, 204);
        wire_reply_done(&r);
    }
    wire_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_tick_in_which_other_guests_leave, setup,
                                        fixture_stop),
    };
    fx.layer = HTTP_LAYER_EPOLL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
