#include "mount/tcmu/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <linux/target_core_user.h>

#include "mount/tcmu/testing/kernel.h"

#define TAKEN 0x40

static const uint8_t read_10[SCSI_CDB] = {0x28, 0, 0, 0, 0, 7, 0, 0, 9};
static const uint8_t read_16[SCSI_CDB] = {0x88, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 8};
static const uint8_t ready[SCSI_CDB] = {0};
static const struct scsi_reply good = {.status = SCSI_GOOD};

struct world {
    struct kernel kernel;
    struct ring ring;
};

static int begin(void **state)
{
    static struct world w;
    struct error err = ERROR_INIT;
    kernel_open(&w.kernel, 1024);
    *state = &w;
    return ring_open(&w.ring, w.kernel.map, w.kernel.bytes, &err);
}

static int end(void **state)
{
    struct world *w = *state;
    kernel_close(&w->kernel);
    return 0;
}

static struct ring_command take(struct world *w)
{
    struct ring_command c;
    struct error err = ERROR_INIT;
    assert_int_equal(ring_take(&w->ring, &c, &err), 1);
    return c;
}

static void takes_nothing(struct world *w)
{
    struct ring_command c;
    struct error err = ERROR_INIT;
    assert_int_equal(ring_take(&w->ring, &c, &err), 0);
}

static void a_command_is_taken_and_replied_to(void **state)
{
    struct world *w = *state;
    struct kernel_reply r;
    uint8_t data[9000];
    memset(data, 7, sizeof data);
    takes_nothing(w);
    assert_int_not_equal(kernel_push(&w->kernel, read_10, 10000), -1);
    const struct ring_command c = take(w);
    takes_nothing(w);
    assert_memory_equal(c.cdb, read_10, SCSI_CDB);
    assert_int_equal(c.room, 10000);
    assert_int_equal(c.pieces, 3);
    assert_false(ring_advance(&w->ring));
    ring_put(&w->ring, &c, data, sizeof data);
    ring_reply(&w->ring, &c, &good);
    assert_false(kernel_take(&w->kernel, &r));
    assert_true(ring_advance(&w->ring));
    assert_false(ring_advance(&w->ring));
    assert_true(kernel_take(&w->kernel, &r));
    assert_int_equal(r.status, SCSI_GOOD);
    assert_memory_equal(r.data, data, sizeof data);
    for (size_t i = sizeof data; i < 10000; i++)
        assert_int_equal(r.data[i], 0);
    assert_int_equal(r.data[10000], 0xee);
}

static void an_error_has_its_sense(void **state)
{
    struct world *w = *state;
    struct kernel_reply r;
    struct scsi_reply reply;
    kernel_push(&w->kernel, read_16, 4096);
    const struct ring_command c = take(w);
    assert_memory_equal(c.cdb, read_16, SCSI_CDB);
    scsi_unreadable(&reply);
    ring_reply(&w->ring, &c, &reply);
    ring_advance(&w->ring);
    assert_true(kernel_take(&w->kernel, &r));
    assert_int_equal(r.status, SCSI_CHECK_CONDITION);
    assert_int_equal(r.key, 3);
}

static void replies_keep_the_order_of_commands(void **state)
{
    struct world *w = *state;
    struct kernel_reply r;
    kernel_push(&w->kernel, read_10, 512);
    kernel_push(&w->kernel, ready, 0);
    const struct ring_command first = take(w), second = take(w);
    ring_reply(&w->ring, &second, &good);
    assert_false(ring_advance(&w->ring));
    assert_false(kernel_take(&w->kernel, &r));
    ring_reply(&w->ring, &first, &good);
    assert_true(ring_advance(&w->ring));
    assert_true(kernel_take(&w->kernel, &r));
    assert_int_equal(r.slot.cdb[0], 0x28);
    assert_true(kernel_take(&w->kernel, &r));
    assert_int_equal(r.slot.cdb[0], 0);
}

/* Sizes of entries differ, so that each place of the end is met. */
static void it_wraps(void **state)
{
    struct world *w = *state;
    struct kernel_reply r;
    for (unsigned i = 0; i < 500; i++) {
        const size_t room = i * 37 % (KERNEL_PAGES * KERNEL_PAGE);
        assert_int_not_equal(kernel_push(&w->kernel, i % 2 ? read_16 : read_10, room), -1);
        const struct ring_command c = take(w);
        assert_int_equal(c.room, room);
        ring_reply(&w->ring, &c, &good);
        assert_true(ring_advance(&w->ring));
        assert_true(kernel_take(&w->kernel, &r));
        assert_int_equal(r.slot.room, room);
    }
}

static void a_message_of_another_kind_is_passed_over(void **state)
{
    struct world *w = *state;
    struct kernel_reply r;
    kernel_push_other(&w->kernel, TCMU_OP_TMR);
    const struct tcmu_cmd_entry_hdr *hdr = (void *)kernel_entry(&w->kernel);
    kernel_push(&w->kernel, ready, 0);
    const struct ring_command c = take(w);
    assert_true((hdr->uflags & TCMU_UFLAG_UNKNOWN_OP) != 0);
    ring_reply(&w->ring, &c, &good);
    assert_true(ring_advance(&w->ring));
    assert_true(kernel_take(&w->kernel, &r));
}

/* A server dies; what it has not replied to, the next one finds. */
static void the_next_server_goes_on_at_the_tail(void **state)
{
    struct world *w = *state;
    struct kernel_reply r;
    struct error err = ERROR_INIT;
    kernel_push(&w->kernel, read_10, 512);
    kernel_push(&w->kernel, read_16, 512);
    kernel_push(&w->kernel, ready, 0);
    take(w);
    const struct ring_command second = take(w);
    ring_reply(&w->ring, &second, &good); /* the first is missing: the tail stays */
    assert_int_equal(ring_open(&w->ring, w->kernel.map, w->kernel.bytes, &err), 0);
    const struct ring_command first = take(w), third = take(w);
    takes_nothing(w);
    assert_int_equal(first.cdb[0], 0x28);
    assert_int_equal(third.cdb[0], 0);
    ring_reply(&w->ring, &first, &good);
    ring_reply(&w->ring, &third, &good);
    assert_true(ring_advance(&w->ring));
    for (unsigned i = 0; i < 3; i++)
        assert_true(kernel_take(&w->kernel, &r));
}

/* It died before it moved the tail. */
static void replies_of_a_dead_server_are_passed_on(void **state)
{
    struct world *w = *state;
    struct kernel_reply r;
    struct error err = ERROR_INIT;
    kernel_push(&w->kernel, read_10, 512);
    const struct ring_command c = take(w);
    ring_reply(&w->ring, &c, &good);
    assert_int_equal(ring_open(&w->ring, w->kernel.map, w->kernel.bytes, &err), 0);
    takes_nothing(w);
    assert_true(ring_advance(&w->ring));
    assert_true(kernel_take(&w->kernel, &r));
}

/* It died while it wrote the reply over the request. */
static void half_a_reply_is_a_lost_command(void **state)
{
    struct world *w = *state;
    struct kernel_reply r;
    struct error err = ERROR_INIT;
    kernel_push(&w->kernel, read_10, 512);
    struct tcmu_cmd_entry *e = (void *)kernel_entry(&w->kernel);
    e->hdr.uflags = TAKEN;
    memset(&e->rsp, 0xff, sizeof e->rsp);
    assert_int_equal(ring_open(&w->ring, w->kernel.map, w->kernel.bytes, &err), 0);
    const struct ring_command c = take(w);
    assert_true(c.lost);
    ring_reply(&w->ring, &c, &(struct scsi_reply){.status = SCSI_BUSY});
    assert_true(ring_advance(&w->ring));
    assert_true(kernel_take(&w->kernel, &r));
    assert_int_equal(r.status, SCSI_BUSY);
}

static void refuses(struct world *w)
{
    struct ring_command c;
    struct error err = ERROR_INIT;
    assert_int_equal(ring_take(&w->ring, &c, &err), E_CORRUPT);
    assert_non_null(strstr(err.message, "damaged"));
    assert_int_equal(ring_open(&w->ring, w->kernel.map, w->kernel.bytes, &err), 0);
}

static void what_is_damaged_is_refused(void **state)
{
    struct world *w = *state;
    const struct iovec behind = {.iov_base = (void *)w->kernel.bytes, .iov_len = 1};
    const struct iovec in_ring = {.iov_base = (void *)200, .iov_len = 1};
    kernel_push(&w->kernel, read_10, 512);
    struct tcmu_cmd_entry *e = (void *)kernel_entry(&w->kernel);
    const struct tcmu_cmd_entry right = *e;
    uint8_t *iov = (uint8_t *)e + offsetof(struct tcmu_cmd_entry, req.iov);
    e->hdr.len_op = TCMU_OP_CMD;
    refuses(w);
    e->hdr.len_op = 2048 | TCMU_OP_CMD;
    refuses(w);
    e->hdr.len_op = 512 | TCMU_OP_PAD; /* the head is within it */
    refuses(w);
    e->hdr.len_op = 16 | TCMU_OP_CMD;
    refuses(w);
    *e = right;
    e->req.iov_cnt = UINT32_MAX;
    refuses(w);
    *e = right;
    e->req.cdb_off = UINT64_MAX;
    refuses(w);
    e->req.cdb_off = 0;
    refuses(w);
    *e = right;
    memcpy(iov, &behind, sizeof behind);
    refuses(w);
    memcpy(iov, &in_ring, sizeof in_ring);
    refuses(w);
}

static void another_layout_is_refused(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    struct tcmu_mailbox *box = (void *)w->kernel.map;
    const struct tcmu_mailbox right = *box;
    assert_int_equal(ring_open(&w->ring, w->kernel.map, 8, &err), E_CORRUPT);
    box->version = 3;
    assert_int_equal(ring_open(&w->ring, w->kernel.map, w->kernel.bytes, &err), E_UNSUPPORTED);
    *box = right;
    box->cmdr_size = UINT32_MAX;
    assert_int_equal(ring_open(&w->ring, w->kernel.map, w->kernel.bytes, &err), E_CORRUPT);
    *box = right;
    box->cmd_tail = box->cmdr_size;
    assert_int_equal(ring_open(&w->ring, w->kernel.map, w->kernel.bytes, &err), E_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_command_is_taken_and_replied_to, begin, end),
        cmocka_unit_test_setup_teardown(an_error_has_its_sense, begin, end),
        cmocka_unit_test_setup_teardown(replies_keep_the_order_of_commands, begin, end),
        cmocka_unit_test_setup_teardown(it_wraps, begin, end),
        cmocka_unit_test_setup_teardown(a_message_of_another_kind_is_passed_over, begin, end),
        cmocka_unit_test_setup_teardown(the_next_server_goes_on_at_the_tail, begin, end),
        cmocka_unit_test_setup_teardown(replies_of_a_dead_server_are_passed_on, begin, end),
        cmocka_unit_test_setup_teardown(half_a_reply_is_a_lost_command, begin, end),
        cmocka_unit_test_setup_teardown(what_is_damaged_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(another_layout_is_refused, begin, end),
    };
    return cmocka_run_group_tests_name("tcmu_ring", tests, NULL, NULL);
}
