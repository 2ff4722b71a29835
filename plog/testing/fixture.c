#include "plog/testing/fixture.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

enum { TEXT_MAX = 500 };

const struct plog_file_how to_read = {.clock_ms = memory_store_clock};
const struct plog_file_how to_write = {
    .write = true, .open = {.create = true, .mode = 0644}, .clock_ms = memory_store_clock};

int set_up(void **state)
{
    struct fixture *x = xcalloc(1, sizeof *x);
    rng_seed(&x->memory.rng, 1);
    x->st = memory_store_of(&x->memory);
    *state = x;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *x = *state;
    memory_store_done(&x->memory);
    free(x);
    return 0;
}

struct plog_file *open_file(struct fixture *x, const struct plog_file_how *how)
{
    struct plog_file *f;
    struct error err = ERROR_INIT;
    if (plog_file_open(&x->st, FIXTURE_FILE, how, &f, &err) != 0)
        fail_msg("%s", err.message);
    return f;
}

void write_text(struct plog_file *f, const char *text, uint64_t offset)
{
    assert_int_equal(plog_file_write(f, text, strlen(text), offset, NULL), 0);
}

void need_text(struct fixture *x, const char *text)
{
    char bytes[TEXT_MAX] = {0};
    size_t got;
    struct plog_file *f = open_file(x, &to_read);
    assert_int_equal(plog_file_read(f, bytes, sizeof bytes, 0, &got, NULL), 0);
    assert_int_equal(got, strlen(text));
    assert_memory_equal(bytes, text, got);
    assert_int_equal(plog_file_close(f, NULL), 0);
}
