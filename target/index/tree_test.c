/* The tree of names, given pages that no index writes; index_test.c has the rest. */
#include "target/index/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/file.h"

static struct {
    char dir[64];
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
} fx;

static int setup(void **state)
{
    (void)state;
    snprintf(fx.dir, sizeof fx.dir, "/tmp/dfc-index-tree-test-XXXXXX");
    return mkdtemp(fx.dir) == NULL || mdb_env_create(&fx.env) != 0 ||
           mdb_env_open(fx.env, fx.dir, MDB_NOSYNC, 0600) != 0 ||
           mdb_txn_begin(fx.env, NULL, 0, &fx.txn) != 0 ||
           mdb_dbi_open(fx.txn, NULL, 0, &fx.dbi) != 0;
}

static int teardown(void **state)
{
    (void)state;
    mdb_txn_abort(fx.txn);
    mdb_env_close(fx.env);
    return file_remove_tree(fx.dir, NULL);
}

static void put_link(uint64_t node, uint64_t to)
{
    struct tree_key k;
    char chunk[TREE_CHUNK];
    unsigned char value[8];
    memset(chunk, 'x', sizeof chunk);
    tree_key_set(&k, node, chunk, sizeof chunk);
    for (int i = 0; i < 8; i++)
        value[i] = (unsigned char)(to >> (56 - 8 * i));
    MDB_val key = {.mv_size = k.len, .mv_data = k.bytes}, val = {.mv_size = 8, .mv_data = value};
    assert_int_equal(mdb_put(fx.txn, fx.dbi, &key, &val, 0), 0);
}

static void assert_drop(int rc)
{
    size_t budget = 1000;
    assert_int_equal(tree_drop(fx.txn, fx.dbi, 7, &budget), rc);
}

static void test_long_names_are_dropped(void **state)
{
    (void)state;
    char name[TREE_NAME_MAX + 1] = "";
    char byte = 'v';
    MDB_val value = {.mv_size = 1, .mv_data = &byte};
    memset(name, 'n', TREE_NAME_MAX);
    assert_int_equal(tree_put(fx.txn, fx.dbi, 7, name, &value, 0), 0);
    assert_int_equal(tree_put(fx.txn, fx.dbi, 7, "short", &value, 0), 0);
    assert_drop(0);
    assert_int_equal(tree_delete(fx.txn, fx.dbi, 7, "short"), MDB_NOTFOUND);
    assert_int_equal(tree_delete(fx.txn, fx.dbi, 7, name), MDB_NOTFOUND);
}

static void test_a_link_to_itself_is_damage(void **state)
{
    (void)state;
    put_link(7, TREE_NODE_FIRST + 5);
    put_link(TREE_NODE_FIRST + 5, TREE_NODE_FIRST + 5);
    assert_drop(MDB_CORRUPTED);
}

static void test_a_link_to_what_is_no_node_is_damage(void **state)
{
    (void)state;
    static const uint64_t nodes[] = {7, TREE_NODE_GONE, UINT64_MAX};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        put_link(7, nodes[i]);
        assert_drop(MDB_CORRUPTED);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_long_names_are_dropped),
        TEST(test_a_link_to_itself_is_damage),
        TEST(test_a_link_to_what_is_no_node_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
