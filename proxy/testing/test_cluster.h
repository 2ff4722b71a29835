/* For the tests: proxies in this process, and targets that only answer HTTP.  A failure of anything
 * here fails the test. */
#pragma once

#include <jansson.h>

#include "net/client/client.h"
#include "proxy/primary/proxy.h"

/* --- a target that is not one ---------------------------------------------------------------- */

struct fake_target;

/* What the next objects calls shall do. */
enum fake_mode {
    FAKE_STORES,     /* PUT takes the body; GET gives back what was put last */
    FAKE_REFUSES,    /* answers PUT with 507 before it has read the body */
    FAKE_HANGS_UP,   /* cuts the reply of GET after its first half */
    FAKE_NEVER_ENDS, /* GET's reply has no end */
    FAKE_IS_BUSY,    /* answers GET with 503 */
    FAKE_IS_SILENT,  /* does not answer GET, until another mode is set */
};

struct fake_target *fake_target_new(const char *id);
void fake_target_free(struct fake_target *t);
const char *fake_target_id(const struct fake_target *t);
const char *fake_target_url(const struct fake_target *t);
void fake_target_mode(struct fake_target *t, enum fake_mode mode);
/* Its names, in order, for GET /v1/list; NULL-terminated.  NULL: it answers 503. */
void fake_target_names(struct fake_target *t, const char *const *names);
/* Its answer to GET /v1/uploads, which stays the caller's.  NULL: it answers 500. */
void fake_target_uploads(struct fake_target *t, const char *page);
uint64_t fake_target_received(struct fake_target *t); /* bytes of bodies */
/* The value of a header of the last call for an object or uploads; "" where it had none. */
void fake_target_header(struct fake_target *t, const char *name, char out[static 64]);
unsigned fake_target_held(struct fake_target *t); /* GETs that are not answered */
unsigned fake_target_busy(struct fake_target *t); /* answers that were 503 */
unsigned fake_target_cut(struct fake_target *t);  /* bodies that were cut short */

/* --- proxies ---------------------------------------------------------------------------------- */

struct test_proxy {
    char dir[64];
    struct proxy *proxy;
};

/* Makes a directory; with `join` NULL a primary.  `more` is further "name=value" parameters, up to
 * NULL. */
struct test_proxy *test_proxy_new(const char *id, const char *join, const char *const *more);
void test_proxy_stop(struct test_proxy *t);  /* the directory stays */
void test_proxy_start(struct test_proxy *t); /* again */
void test_proxy_free(struct test_proxy *t);

/* --- calls ------------------------------------------------------------------------------------ */

struct test_client {
    struct loop *loop;
    struct http_client *client;
};

void test_client_open(struct test_client *c);
void test_client_close(struct test_client *c);
/* The reply's status; its body in *reply where that is not NULL.  `body` may be NULL. */
int test_call(struct test_client *c, enum http_method method, const char *base, const char *path,
              const char *body, char **reply);
/* As test_call(), and the reply is JSON. */
json_t *test_json(struct test_client *c, enum http_method method, const char *base,
                  const char *path, const char *body, int status);
/* The reply must be an error document with this status and code, whose message has `words`. */
void test_error(struct test_client *c, enum http_method method, const char *base, const char *path,
                const char *body, int status, const char *code, const char *words);
/* A connection to speak on by hand. */
int test_connect(const char *base);
void test_send(int fd, const void *data, size_t len);
/* Everything until the other side closes. */
char *test_read_all(int fd);
/* Registers the target as a node of p's cluster. */
void test_join(struct test_client *c, struct test_proxy *p, const struct fake_target *t);
/* Asks until the condition holds. */
#define test_until(condition)                                \
    do {                                                     \
        uint64_t test_began_ = clock_ms();                   \
        while (!(condition)) {                               \
            if (clock_ms() - test_began_ > 20000)            \
                fail_msg("not within 20 s: %s", #condition); \
            usleep(2000);                                    \
        }                                                    \
    } while (0)
