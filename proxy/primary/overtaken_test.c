/* Calls to a primary that never answers, while others are elected. */
#include "proxy/primary/overtaken.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <semaphore.h>
#include <string.h>

#include "common/mem.h"
#include "net/testing/peer.h"

struct world {
    struct peer peer;
    struct loop *loop, *data_loop;
    struct http_client *client;
    struct state_holder *state;
    struct overtaken *overtaken;
    uint64_t grace_ms;
};

/* One call; `how` is what ended it. */
struct asking {
    struct world *w;
    struct overtaken_wait wait;
    char url[64];
    sem_t over;
    int how;
};

/* Whoever comes is heard, and not answered. */
static void silence(struct peer *p)
{
    struct peer_conn *held[8];
    size_t count = 0;
    while (count < 8 && (held[count] = peer_accept(p)) != NULL)
        count++;
    while (count > 0)
        peer_close(held[--count]);
}

static void make_parts(void *arg)
{
    struct world *w = arg;
    w->overtaken = overtaken_new(w->loop, w->client, w->state, w->grace_ms);
}

static void free_parts(void *arg)
{
    struct world *w = arg;
    overtaken_free(w->overtaken);
}

static struct cluster_state *state_of(uint64_t term, const char *primary)
{
    struct cluster_state *s = state_new("c-1");
    s->term = term;
    s->version = 1;
    free(s->primary);
    s->primary = xstrdup(primary);
    return s;
}

static void open_world(struct world *w, uint64_t grace_ms)
{
    static const struct http_client_config config = {.connect_timeout_ms = 20000,
                                                     .stall_timeout_ms = 60000};
    *w = (struct world){.grace_ms = grace_ms};
    peer_start(&w->peer, silence, NULL);
    assert_int_equal(loop_new("control", &w->loop, NULL), 0);
    assert_int_equal(loop_new("data", &w->data_loop, NULL), 0);
    assert_int_equal(http_client_new(w->data_loop, &config, &w->client, NULL), 0);
    w->state = state_holder_new(state_of(5, "p1"));
    loop_call(w->loop, make_parts, w);
}

static void close_world(struct world *w)
{
    http_client_free(w->client);
    loop_call(w->loop, free_parts, w);
    loop_free(w->data_loop);
    loop_free(w->loop);
    state_holder_free(w->state);
    peer_stop(&w->peer);
    peer_join(&w->peer);
}

static void asked(void *arg, struct http_result *result)
{
    struct asking *a = arg;
    overtaken_remove(a->w->overtaken, &a->wait);
    a->how = result->code;
    sem_post(&a->over);
}

static void ask(struct asking *a, struct world *w, uint64_t term, const char *primary)
{
    *a = (struct asking){.w = w, .wait = {.term = term, .primary = primary}};
    snprintf(a->url, sizeof a->url, "http://127.0.0.1:%u/", w->peer.port);
    sem_init(&a->over, 0, 0);
    const struct http_call call = {.method = HTTP_GET, .url = a->url};
    overtaken_call(w->overtaken, &a->wait, &call, asked, a);
}

static void state_changed(void *arg)
{
    overtaken_state_changed(arg);
}

static void elect(struct world *w, uint64_t term, const char *primary)
{
    struct cluster_state *s = state_of(term, primary);
    assert_true(state_advance(w->state, s));
    state_unref(s);
    loop_call(w->loop, state_changed, w->overtaken);
}

static int ended(struct asking *a)
{
    while (sem_wait(&a->over) != 0)
        ;
    sem_destroy(&a->over);
    return a->how;
}

static void who_waits_for_another_one_is_let_go(void **state)
{
    (void)state;
    struct world w;
    struct asking old, next;
    open_world(&w, 0);
    ask(&old, &w, 5, "p1");
    ask(&next, &w, 5, "p2"); /* the election was known before the state */
    elect(&w, 6, "p2");
    assert_int_equal(ended(&old), E_CANCELLED);
    assert_int_equal(sem_trywait(&next.over), -1);
    elect(&w, 7, "p2"); /* it was elected again: the call may be answered yet */
    elect(&w, 8, "p3");
    assert_int_equal(ended(&next), E_CANCELLED);
    close_world(&w);
}

/* The state changed between the finding of the primary and the call. */
static void who_comes_too_late_is_let_go(void **state)
{
    (void)state;
    struct world w;
    struct asking late;
    open_world(&w, 0);
    elect(&w, 6, "p2");
    ask(&late, &w, 5, "p1");
    assert_int_equal(ended(&late), E_CANCELLED);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_another_one_is_let_go),
        cmocka_unit_test(who_comes_too_late_is_let_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
