#include "net/http/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/buf.h"
#include "net/http/server.h"
#include "net/http/request.h"

static const struct http_route list = {
    .name = "list",
    .method = HTTP_GET,
    .pattern = "/v1/objects/{bucket}",
    .query = HTTP_PARAMETERS({"prefix", "text"}, {"limit", "1 to 10000"}, {"dfcv", "state"})};
static const struct http_route bare = {.name = "bare", .method = HTTP_PUT, .pattern = "/v1/bare"};
static const struct http_route inner = {.name = "inner",
                                        .method = HTTP_PUT,
                                        .pattern = "/v1/inner",
                                        .query = HTTP_PARAMETERS({"dfcv", "state"})};
static const struct http_route any = {.name = "any",
                                      .method = HTTP_GET,
                                      .pattern = "/v1/any",
                                      .query = HTTP_PARAMETERS({HTTP_ANY_PARAMETER, "whatever"})};

struct row {
    const struct http_route *route;
    const char *raw, *pairs; /* "name=value|", or NULL: refused, … */
    const char *message;     /* … with this */
};

static void check(const struct row *row, bool strict)
{
    _cleanup_(arena_freep)
    struct arena *arena = arena_new(256);
    _cleanup_(buf_done)
    struct buf pairs = BUF_INIT;
    struct request_header *got = NULL;
    struct error err = ERROR_INIT;
    int code = query_parse(arena, row->raw, row->route, strict, &got, &err);
    if (row->pairs == NULL) {
        assert_int_equal(code, E_INVALID);
        assert_string_equal(err.message, row->message);
        return;
    }
    assert_int_equal(code, 0);
    for (; got != NULL; got = got->next)
        buf_printf(&pairs, "%s=%s|", got->name, got->value);
    assert_string_equal(buf_str(&pairs), row->pairs);
}

/* Whoever asks. */
static void pairs_are_read(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {&list, "", "", NULL},
        {&bare, "", "", NULL},
        {&list, "prefix=a", "prefix=a|", NULL},
        {&list, "limit=7&prefix=a%2F%26&prefix=b", "limit=7|prefix=a/&|prefix=b|", NULL},
        {&list, "prefix", "prefix=|", NULL},
        {&list, "prefix=&limit==1", "prefix=|limit==1|", NULL},
        {&list, "%70refix=1+1", "prefix=1+1|", NULL},
        {&list, "&&limit=1&", "limit=1|", NULL},
        {&bare, "&", "", NULL},
        {&list, "dfcv=1.2&dfcnew=x&limit=1", "dfcv=1.2|limit=1|", NULL},
        {&bare, "dfcb=1&dfcv=1.2", "", NULL},
        {&any, "prefx=1&x", "prefx=1|x=|", NULL},
        {&list, "limit=%zz", NULL, "query: bad percent escape at byte 0"},
        {&list, "a%=1", NULL, "query: bad percent escape at byte 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        check(&rows[i], true);
        check(&rows[i], false);
    }
}

#define NO_PARAMETER(name) "GET /v1/objects/{bucket} has no parameter '" name "'"
#define TAKES "; it takes prefix, limit"

static void unknown_ones_are_refused_of_clients(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {&list, "max-keys=2", NULL, NO_PARAMETER("max-keys") TAKES},
        {&list, "prefx=a", NULL, NO_PARAMETER("prefx") " (did you mean 'prefix'?)" TAKES},
        {&list, "prefix=a&Limit=3", NULL, NO_PARAMETER("Limit") " (did you mean 'limit'?)" TAKES},
        {&list, "%64prefix=a", NULL, NO_PARAMETER("dprefix") " (did you mean 'prefix'?)" TAKES},
        {&list, "=a", NULL, NO_PARAMETER("") TAKES},
        {&list, "*=a", NULL, NO_PARAMETER("*") TAKES},
        {&list, "DFCV=1.2", NULL, NO_PARAMETER("DFCV") TAKES},
        {&bare, "x=1", NULL, "PUT /v1/bare has no parameter 'x'; it takes none"},
        {&inner, "dfc=1&dfv=1", NULL, "PUT /v1/inner has no parameter 'dfv'; it takes none"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], true);
}

static void a_long_name_is_cut(void **state)
{
    (void)state;
    char raw[4000];
    memset(raw, 'x', sizeof raw - 1);
    raw[sizeof raw - 1] = '\0';
    char message[200];
    snprintf(message, sizeof message, NO_PARAMETER("%.64s") TAKES, raw);
    check(&(struct row){&list, raw, NULL, message}, true);
}

/* Not refused between nodes, and not seen there either. */
static void unknown_ones_are_passed_over_between_nodes(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {&list, "newer=1&limit=3&=x", "limit=3|", NULL},
        {&bare, "newer=1", "", NULL},
        {&inner, "dfv=1&dfcv=1.2", "dfcv=1.2|", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(&rows[i], false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_read),
        cmocka_unit_test(unknown_ones_are_refused_of_clients),
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(unknown_ones_are_passed_over_between_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
