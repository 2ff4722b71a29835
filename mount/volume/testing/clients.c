#include "mount/volume/testing/clients.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mount/meta/memory.h"

struct clients f;

static int64_t clock_ns(void *context)
{
    (void)context;
    return f.now_ms * 1000000;
}

static void pause_ms(void *context, uint64_t ms)
{
    (void)context;
    (void)ms;
}

void advance(int64_t ms)
{
    f.now_ms += ms;
    meta_memory_set_clock(f.m, f.now_ms);
}

struct volume *clients_open(struct volume_memory *memory)
{
    struct volume *v;
    struct error err = ERROR_INIT;
    struct volume_env env = {.clock_ns = clock_ns,
                             .pause_ms = pause_ms,
                             .seed = 1,
                             .lanes = 2,
                             .tries = 50,
                             .memory = memory};
    if (volume_open(f.m, &env, &v, &err) != 0)
        fail_msg("%s", err.message);
    return v;
}

struct volume_format small_format(void)
{
    struct volume_format format;
    format_init(&format, "v", "dfc://b");
    format.chunk_bytes = CHUNK;
    format.block_bytes = CHUNK / 4;
    return format;
}

static int setup_with(struct volume_format format)
{
    struct error err = ERROR_INIT;
    f = (struct clients){.arena = arena_new(4096)};
    assert_int_equal(meta_memory_ops.open("", true, &f.m, &err), 0);
    advance(START_MS);
    assert_int_equal(format_write(f.m, &format, 7, 8, &err), 0);
    f.a = clients_open(NULL);
    f.b = clients_open(NULL);
    return 0;
}

int clients_setup(void **state)
{
    (void)state;
    return setup_with(small_format());
}

int clients_setup_limits(void **state)
{
    struct volume_format format = small_format();
    (void)state;
    format.max_inodes = 3;
    format.max_bytes = 100;
    return setup_with(format);
}

int clients_teardown(void **state)
{
    (void)state;
    volume_close(f.a);
    volume_close(f.b);
    meta_close(f.m);
    arena_free(f.arena);
    return 0;
}

uint64_t make(uint64_t directory, const char *name, uint32_t mode)
{
    struct volume_inode out;
    struct volume_new what = {.mode = mode, .uid = 1, .gid = 2};
    assert_int_equal(volume_create(f.a, directory, name, &what, &out), 0);
    return out.ino;
}

struct attr attr_of(uint64_t ino)
{
    struct attr a;
    assert_int_equal(volume_getattr(f.b, ino, &a), 0);
    return a;
}
