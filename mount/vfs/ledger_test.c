#include "mount/vfs/ledger.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct seen {
    unsigned count;
    uint64_t number;
    uint64_t uses;
    struct ledger_record last;
    char key[4096];
};

static void see(void *context, uint64_t number, const struct ledger_record *r)
{
    struct seen *s = context;
    s->count++;
    s->number = number;
    s->uses += r->uses;
    s->last = *r;
    snprintf(s->key, sizeof s->key, "%s", r->texts[0]);
}

static const struct ledger_record node = {
    .kind = LEDGER_NODE,
    .is_directory = true,
    .uses = 3,
    .inode = 4,
    .size = 5,
    .modified_s = -6,
    .texts = {"key", "version"},
};

static void records_outlive_the_ledger(void **state)
{
    (void)state;
    struct seen s = {0};
    int fd = ledger_memory();
    struct ledger *l = ledger_open(fd);
    assert_non_null(l);
    uint64_t number = ledger_add(l, &node);
    uint64_t other = ledger_add(l, &node);
    assert_true(number >= LEDGER_FIRST && other >= LEDGER_FIRST && other != number);
    ledger_uses(l, number, 9);
    ledger_remove(l, other);
    assert_int_equal(ledger_stamp(l), 1);
    ledger_close(l);
    l = ledger_open(fd);
    assert_int_equal(ledger_stamp(l), 2);
    ledger_each(l, see, &s);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.number, number);
    assert_int_equal(s.last.kind, LEDGER_NODE);
    assert_true(s.last.is_directory);
    assert_int_equal(s.last.uses, 9);
    assert_int_equal(s.last.inode, 4);
    assert_int_equal(s.last.size, 5);
    assert_int_equal(s.last.modified_s, -6);
    assert_string_equal(s.last.texts[0], "key");
    assert_string_equal(s.last.texts[1], "version");
    assert_string_equal(s.last.texts[2], "");
    assert_int_equal(ledger_add(l, &node), other); /* numbers are used again */
    ledger_close(l);
    close(fd);
}

static void long_texts_have_large_slots(void **state)
{
    (void)state;
    struct seen s = {0};
    char key[4096];
    struct ledger *l = ledger_open(-1);
    struct ledger_record r = {.kind = LEDGER_FILE, .texts = {key, "tag", "sum"}};
    memset(key, 'k', sizeof key);
    key[4095] = '\0';
    assert_int_equal(ledger_add(l, &r), 0); /* too long */
    key[1024] = '\0';
    uint64_t number = ledger_add(l, &r);
    assert_true(number != 0);
    ledger_each(l, see, &s);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.number, number);
    assert_string_equal(s.key, key);
    assert_string_equal(s.last.texts[2], "sum");
    ledger_remove(l, number);
    ledger_close(l);
}

/* A process that adds and removes until it is killed: each record that is left is whole. */
static void a_kill_leaves_whole_records(void **state)
{
    (void)state;
    int fd = ledger_memory(), ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct ledger *l = ledger_open(fd);
        uint64_t numbers[64] = {0};
        for (unsigned i = 0;; i++) {
            uint64_t *at = &numbers[i % 64];
            if (*at != 0)
                ledger_remove(l, *at);
            *at = ledger_add(l, &node);
            if (i == 100000 && write(ready[1], "", 1) != 1)
                _exit(1);
        }
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    struct seen s = {0};
    struct ledger *l = ledger_open(fd);
    ledger_each(l, see, &s);
    assert_true(s.count == 63 || s.count == 64);
    assert_int_equal(s.uses, 3 * s.count);
    assert_string_equal(s.key, "key");
    ledger_close(l);
    close(ready[0]);
    close(ready[1]);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_outlive_the_ledger),
        cmocka_unit_test(long_texts_have_large_slots),
        cmocka_unit_test(a_kill_leaves_whole_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
