/* A list and a bucket's URL, in two lines.  Whatever they are: what is allowed without a row is one
 * of the providers' own hosts, by https; and a row never takes anything away. */
#include "cluster/props/backend_endpoints.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "cluster/props/backend.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_own(const struct backend_spec *s)
{
    return strncmp(s->endpoint, "https://", 8) == 0 &&
           (strstr(s->endpoint, ".com") != NULL || strstr(s->endpoint, ".COM") != NULL ||
            strpbrk(s->endpoint, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL);
}

static void check(const struct backend_endpoints *e, const char *url)
{
    struct backend_endpoints *none;
    struct backend_spec s;
    _cleanup_(arena_freep)
    struct arena *a = arena_new(1024);
    if (backend_parse(url, a, &s, NULL) != 0)
        return;
    assert(backend_endpoints_new("", &none, NULL) == 0);
    bool bare = backend_endpoints_check(none, &s, NULL) == 0;
    bool has_credentials =
        s.is_signed && (strcmp(s.provider, "s3") == 0 || strcmp(s.provider, "gcs") == 0);
    assert(!bare || !has_credentials || is_own(&s));
    assert(!bare || backend_endpoints_check(e, &s, NULL) == 0);
    backend_endpoints_free(none);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    char *url = strchr(text, '\n');
    struct backend_endpoints *e;
    struct error err = ERROR_INIT;
    if (url == NULL)
        return 0;
    *url++ = '\0';
    if (backend_endpoints_new(text, &e, &err) != 0) {
        assert(err.message[0] != '\0');
        return 0;
    }
    check(e, url);
    backend_endpoints_free(e);
    return 0;
}
