#include "api/ctl/complete.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static struct completion found(const char *const *words)
{
    struct completion c;
    size_t n = 0;
    while (words[n] != NULL)
        n++;
    completion_find(&c, words, n);
    return c;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void what_is_completed(void **state)
{
    (void)state;
    assert_int_equal(found(WORDS("")).kind, COMPLETE_COMMAND);
    assert_int_equal(found(WORDS("--endpoint", "x", "")).kind, COMPLETE_COMMAND);
    assert_int_equal(found(WORDS("bucket", "")).kind, COMPLETE_VERB);
    assert_int_equal(found(WORDS("bucket", "ls", "--w")).kind, COMPLETE_FLAG);
    assert_int_equal(found(WORDS("bucket", "none", "")).kind, COMPLETE_NOTHING);
    struct completion c = found(WORDS("ls", "-o", "j"));
    assert_int_equal(c.kind, COMPLETE_CHOICE);
    assert_ptr_equal(c.flag, &flag_table[F_output]);
    c = found(WORDS("ls", "--watch", "b"));
    assert_int_equal(c.word, WORD_OBJECT); /* --watch takes its value only after = */
    assert_int_equal(found(WORDS("put", "f", "")).word, WORD_OBJECT);
    assert_int_equal(found(WORDS("put", "")).word, WORD_FILE);
    assert_int_equal(found(WORDS("put", "-j", "4", "-q", "f", "")).word, WORD_OBJECT);
    assert_int_equal(found(WORDS("node", "show", "")).word, WORD_NODE);
    assert_int_equal(found(WORDS("node", "show", "t1", "")).word, WORD_OTHER);
    assert_int_equal(found(WORDS("bucket", "rm", "a", "b", "c", "")).word, WORD_BUCKET);
    c = found(WORDS("sort", "start", "--input-bucket", "tr"));
    assert_int_equal(c.kind, COMPLETE_WORD);
    assert_int_equal(c.word, WORD_BUCKET);
    assert_string_equal(c.start, "tr");
    assert_string_equal(c.lead, "");
    c = found(WORDS("sort", "start", "--output-bucket=tr"));
    assert_int_equal(c.kind, COMPLETE_WORD);
    assert_int_equal(c.word, WORD_BUCKET);
    assert_string_equal(c.start, "tr");
    assert_string_equal(c.lead, "--output-bucket=");
    assert_int_equal(found(WORDS("config", "show", "--node", "")).word, WORD_NODE);
    assert_int_equal(found(WORDS("ls", "--limit", "")).kind, COMPLETE_CHOICE);
    completion_find(&c, NULL, 0);
    assert_int_equal(c.kind, COMPLETE_COMMAND);
}

static void candidates(void **state)
{
    (void)state;
    const struct {
        const char *const *words;
        const char *offered;
    } rows[] = {
        {WORDS("n"), "node\n"},
        {WORDS("bucket", "r"), "rm\nrevoke\n"},
        {WORDS("sort", "start", "--algorithm", "s"), "shuffle\n"},
        {WORDS("sort", "start", "--algorithm=s"), "--algorithm=shuffle\n"},
        {WORDS("ls", "--out"), "--output\n"},
        {WORDS("ls", "--copies"), ""},
        {WORDS("ls", "--nonsense=x"), ""},
        {WORDS("ls", "--limit", ""), ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf out = BUF_INIT;
        struct completion c;
        size_t n = 0;
        while (rows[i].words[n] != NULL)
            n++;
        completion_find(&c, rows[i].words, n);
        completion_of_table(&c, &out);
        assert_string_equal(buf_str(&out), rows[i].offered);
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_completed),
        cmocka_unit_test(candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
