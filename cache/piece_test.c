#include "cache/piece.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAME "bucket/7\nset/a\n\"v1\""

static const struct cache_entity entity = {.name = NAME, .set = "bucket/set", .size = 9u << 20};

static void an_entity_is_cut_into_pieces(void **state)
{
    (void)state;
    assert_int_equal(piece_count(0), 0);
    assert_int_equal(piece_count(1), 1);
    assert_int_equal(piece_count(PIECE_BYTES), 1);
    assert_int_equal(piece_count(PIECE_BYTES + 1), 2);
    assert_int_equal(piece_count(UINT64_MAX), UINT64_MAX / PIECE_BYTES + 1);
    assert_int_equal(piece_of(&entity, 0).size, PIECE_BYTES);
    assert_int_equal(piece_of(&entity, 2).size, 1u << 20);
    assert_int_equal(piece_parts(&(struct piece){.size = PIECE_PART + 1}), 2);
}

static void a_name_is_read_back(void **state)
{
    (void)state;
    char name[PIECE_NAME];
    struct piece_id back, id = piece_of(&entity, 2).id;
    piece_name(&id, name);
    assert_true(piece_name_parse(name, &back));
    assert_true(piece_id_equal(&id, &back));
    id.index = UINT64_MAX;
    piece_name(&id, name);
    assert_true(piece_name_parse(name, &back));
    assert_int_equal(back.index, UINT64_MAX);
    static const char *const wrong[] = {"",
                                        "lock",
                                        "0123",
                                        "00000000000000010000000000000002",
                                        "00000000000000010000000000000002-",
                                        "00000000000000010000000000000002-01",
                                        "00000000000000010000000000000002-1x",
                                        "0000000000000001000000000000000A-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(piece_name_parse(wrong[i], &back));
}

static void a_foot_proves_its_piece_alone(void **state)
{
    (void)state;
    uint64_t sums[PIECE_PARTS], back[PIECE_PARTS] = {0};
    struct piece p = piece_of(&entity, 2);
    size_t size = piece_foot_size(&p);
    unsigned char *foot = malloc(size);
    for (size_t i = 0; i < PIECE_PARTS; i++)
        sums[i] = i * 77;
    piece_foot_write(&p, sums, foot);
    assert_true(piece_foot_read(&p, foot, back));
    assert_memory_equal(sums, back, piece_parts(&p) * sizeof *sums);
    for (size_t i = 0; i < size; i++) { /* each byte counts */
        foot[i] ^= 1;
        assert_false(piece_foot_read(&p, foot, back));
        foot[i] ^= 1;
    }
    /* Names of one length, since a file of another size is no piece of this entity. */
    const struct cache_entity other = {
        .name = "bucket/7\nset/a\n\"v2\"", .set = "", .size = 9u << 20};
    struct piece q = piece_of(&other, 2);
    q.id = p.id; /* as if the hashes were equal */
    assert_false(piece_foot_read(&q, foot, back));
    const struct cache_entity longer = {.name = NAME, .set = "", .size = (9u << 20) + 1};
    q = piece_of(&longer, 2);
    q.size = p.size;
    assert_false(piece_foot_read(&q, foot, back));
    q = p;
    q.id.index = 1;
    assert_false(piece_foot_read(&q, foot, back));
    free(foot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entity_is_cut_into_pieces),
        cmocka_unit_test(a_name_is_read_back),
        cmocka_unit_test(a_foot_proves_its_piece_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
