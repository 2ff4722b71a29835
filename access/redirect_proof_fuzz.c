/* A proof is good for its call, and for none that differs in one field. */
#include "access/redirect_proof.h"

#include <assert.h>
#include <string.h>

#include "access/testing/fuzz_keys.h"
#include "common/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define USER "9f0c0000000000000000000000000001"

enum { FIELDS = 6 };

/* The fields are the input's lines; one that is "-" is absent. */
static void call_of(char *text, struct redirect_call *call, const char **fields)
{
    char *rest = text;
    for (int i = 0; i < FIELDS; i++) {
        fields[i] = rest != NULL ? strsep(&rest, "\n") : "";
        if (i > 1 && strcmp(fields[i], "-") == 0)
            fields[i] = NULL;
    }
    *call = (struct redirect_call){.method = fields[0],
                                   .bucket_id = 1,
                                   .object = fields[1],
                                   .offset = fields[2],
                                   .length = fields[3],
                                   .range = fields[4],
                                   .new_name = fields[5]};
}

static enum proof_verdict check(const char *proof, const struct redirect_call *call)
{
    char user[TOKEN_USER_CHARS + 1];
    return redirect_proof_check(keys_once(), proof, 0, call, user);
}

/* The texts of two neighbours, moved by one character or swapped, are another call. */
static void check_others(const char *proof, const struct redirect_call *call)
{
    struct redirect_call other = *call;
    other.offset = call->length;
    other.length = call->offset;
    bool same = call->offset == call->length || (call->offset != NULL && call->length != NULL &&
                                                 strcmp(call->offset, call->length) == 0);
    assert(check(proof, &other) == (same ? PROOF_VALID : PROOF_INVALID));
    other = *call;
    other.bucket_id = 2;
    assert(check(proof, &other) == PROOF_INVALID);
    other = *call;
    if (call->object[0] != '\0') {
        other.object = call->object + 1;
        assert(check(proof, &other) == PROOF_INVALID);
    }
    other = *call;
    other.range = call->range != NULL ? NULL : "";
    assert(check(proof, &other) == PROOF_INVALID);
    other = *call;
    other.member = call->new_name != NULL ? call->new_name : "";
    assert(check(proof, &other) == PROOF_INVALID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_(buf_done)
    struct buf text = BUF_INIT, proof = BUF_INIT;
    struct redirect_call call;
    const char *fields[FIELDS];
    buf_append(&text, data, size);
    buf_putc(&text, '\0');
    call_of(text.data, &call, fields);
    redirect_proof_put(keys_once(), USER, 1, &call, &proof);
    assert(check(buf_str(&proof), &call) == PROOF_VALID);
    check_others(buf_str(&proof), &call);
    buf_done(&proof);
    return 0;
}
