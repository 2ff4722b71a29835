/* Whatever answers for etcd is taken apart, or refused with a sentence. */
#include "proxy/metastore/etcd_wire.h"

#include <assert.h>
#include <string.h>

#include "common/jsonx.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_keys(int code, struct etcd_kvs *kvs, const struct error *err)
{
    assert(code == 0 || err->message[0] != '\0');
    for (size_t i = 0; code == 0 && i < kvs->count; i++)
        assert(kvs->kvs[i].key != NULL);
    if (code == 0)
        etcd_kvs_done(kvs);
}

static void check_answers(json_t *reply)
{
    struct etcd_kvs kvs = {0};
    struct error err = ERROR_INIT;
    bool succeeded;
    uint64_t revision;
    check_keys(etcd_kvs_parse(reply, &kvs, &err), &kvs, &err);
    for (size_t n = 0; n < 3; n++) {
        kvs = (struct etcd_kvs){0};
        err = ERROR_INIT;
        check_keys(etcd_txn_kvs_parse(reply, n, &kvs, &err), &kvs, &err);
    }
    err = ERROR_INIT;
    if (etcd_txn_parse(reply, &succeeded, &revision, &err) != 0)
        assert(err.message[0] != '\0');
}

/* What is canonical is written as it was read. */
static void check_base64(const char *text)
{
    _cleanup_(buf_done)
    struct buf bytes = BUF_INIT, again = BUF_INIT;
    if (etcd_base64_parse(text, &bytes, NULL) != 0)
        return;
    etcd_base64_put(&again, buf_str(&bytes), bytes.len);
    assert(strcmp(buf_str(&again), text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_json_ json_t *reply = NULL;
    struct error err = ERROR_INIT;
    _cleanup_free_ char *text = xstrndup((const char *)data, size);
    size_t len = strlen(text); /* the copy ends at the first NUL of the input */
    if (etcd_answer_check(500, text, len, &err) != 0)
        assert(err.message[0] != '\0');
    etcd_answer_check(200, text, len, &err);
    check_base64(text);
    if (json_parse(text, len, &reply, NULL) == 0)
        check_answers(reply);
    return 0;
}
