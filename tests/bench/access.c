/* dfc-access-bench [--quick]: what access control costs a node, in microseconds of one processor: a
 * bearer token checked, a redirect proof checked and made, and a decision over as many grants as a
 * user may have, of which the last one counts.  Medians of the rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access/decide.h"
#include "access/redirect_proof.h"
#include "common/cleanup.h"
#include "common/clock.h"

enum { ROUNDS = 7 };

#define USER "9f0c0000000000000000000000000001"

struct bench {
    struct proof_keys *keys;
    struct redirect_call call;
    struct buf token, proof;
    struct access doc;
    struct user user;
    size_t wrong; /* must stay 0 */
};

static void check_token(struct bench *b)
{
    struct token t;
    b->wrong += token_check(b->keys, buf_str(&b->token), 1, &t) != PROOF_VALID;
}

static void check_redirect(struct bench *b)
{
    char user[TOKEN_USER_CHARS + 1];
    b->wrong += redirect_proof_check(b->keys, buf_str(&b->proof), 1, &b->call, user) != PROOF_VALID;
}

static void make_redirect(struct bench *b)
{
    buf_clear(&b->proof);
    redirect_proof_put(b->keys, USER, 1000, &b->call, &b->proof);
}

/* Each is a pattern of a bucket, and a prefix. */
static void fill_grants(struct grant grants[static GRANTS_MAX], struct user *user)
{
    for (size_t i = 0; i < GRANTS_MAX; i++)
        grants[i] = (struct grant){.rights = right_bit(RIGHT_READ),
                                   .bucket = i + 1 < GRANTS_MAX ? "train-*-raw" : "train-*",
                                   .prefix = "images/",
                                   .prefix_len = strlen("images/")};
    *user = (struct user){.name = "reader",
                          .id = USER,
                          .enabled = true,
                          .grants = {.count = GRANTS_MAX, .items = grants}};
}

static void decide(struct bench *b)
{
    static const char key[] = "images/shard-000017.tar";
    const struct access_question q = {
        .right = RIGHT_READ, .bucket = "train-2026", .key = key, .key_len = sizeof key - 1};
    b->wrong += !access_decide(&b->doc, &b->user, &q).allowed;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(struct bench *b, const char *what, void (*run)(struct bench *b), unsigned times)
{
    double us[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t began = clock_us();
        for (unsigned n = 0; n < times; n++)
            run(b);
        us[i] = (double)(clock_us() - began) / times;
    }
    qsort(us, ROUNDS, sizeof *us, by_value);
    printf("%-24s %.3f us\n", what, us[ROUNDS / 2]);
}

int main(int argc, char **argv)
{
    static const char line[] = "0123456789abcdef0123456789abcdef";
    unsigned times = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 1000 : 100000;
    struct cluster_keys keys;
    if (cluster_keys_parse(line, strlen(line), &keys, NULL) != 0)
        return 1;
    const struct token t = {.user = USER, .expires_ms = 1000};
    struct bench b = {
        .keys = proof_keys_new(&keys),
        .call = {.reads = true, .object = "train/shard-000017.tar", .range = "bytes=0-"}};
    token_put(b.keys, &t, &b.token);
    make_redirect(&b);
    struct grant grants[GRANTS_MAX];
    fill_grants(grants, &b.user);
    measure(&b, "decision of 64 grants", decide, times);
    measure(&b, "token checked", check_token, times);
    measure(&b, "redirect proof checked", check_redirect, times);
    measure(&b, "redirect proof made", make_redirect, times);
    buf_done(&b.token);
    buf_done(&b.proof);
    proof_keys_unref(b.keys);
    return b.wrong == 0 ? 0 : 1;
}
