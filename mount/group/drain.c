#include "mount/group/drain.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/rng.h"
#include "io/loop.h"
#include "net/auth/auth.h"
#include "net/client/client.h"

static int call(struct http_client *client, const struct group_member *member, uint64_t timeout_ms,
                struct error *err)
{
    _cleanup_free_ char *url = xprintf("%s/v1/drain", member->url);
    return http_json_wait(client, member->id, HTTP_POST, url, NULL, timeout_ms, NULL, err);
}

int group_drain(const struct group_member *member, const char *key_file, uint64_t timeout_ms,
                struct error *err)
{
    char boot[16];
    struct auth *auth = NULL;
    struct loop *loop = NULL;
    struct http_client *client = NULL;
    random_id("", boot);
    const struct auth_config who = {.key_file = key_file, .node = boot, .boot = boot};
    int rc = auth_new(&who, &auth, err);
    const struct http_client_config config = {
        .connect_timeout_ms = timeout_ms, .stall_timeout_ms = timeout_ms, .auth = auth};
    if (rc == 0 && (rc = loop_new("dfc-drain", &loop, err)) == 0 &&
        (rc = http_client_new(loop, &config, &client, err)) == 0)
        rc = call(client, member, timeout_ms, err);
    if (client != NULL)
        http_client_free(client);
    if (loop != NULL)
        loop_free(loop);
    auth_free(auth);
    return rc;
}
