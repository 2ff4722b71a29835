#include "target/uploads/upload_plan.h"

#include <stdio.h>
#include <string.h>

#include "common/checksum.h"
#include "common/mem.h"
#include "s3/sum_combine.h"
#include "target/uploads/part_place.h"

static enum upload_verdict judge(const struct part_table *table, const struct s3_sum_kind *sums,
                                 const struct listed_part *list, size_t count, size_t at)
{
    const struct part *part = part_table_find(table, list[at].number);
    if (at > 0 && list[at].number <= list[at - 1].number)
        return UPLOAD_ORDER;
    if (part == NULL)
        return UPLOAD_MISSING;
    if (list[at].as_stored)
        return UPLOAD_COMPLETE;
    if (memcmp(part->md5, list[at].md5, PART_MD5) != 0)
        return UPLOAD_OTHER_BYTES;
    if (sums->is_asked && list[at].has_sum && !s3_sum_equal(&part->sum, &list[at].sum))
        return UPLOAD_OTHER_SUM;
    return part->size < PART_SIZE_MIN && at + 1 < count ? UPLOAD_SMALL : UPLOAD_COMPLETE;
}

static struct upload_plan refused(enum upload_verdict verdict, size_t at)
{
    return (struct upload_plan){.verdict = verdict, .at = at};
}

static void write_tag(const struct part_table *table, const struct listed_part *list, size_t count,
                      struct upload_plan *plan)
{
    _cleanup_(checksum_freep)
    struct checksum *c = checksum_new(CHECKSUM_MD5);
    struct checksum_value md5;
    char hex[2 * CHECKSUM_MAX + 1];
    for (size_t i = 0; i < count; i++)
        checksum_update(c, part_table_find(table, list[i].number)->md5, PART_MD5);
    checksum_final(c, &md5);
    checksum_hex(&md5, hex);
    snprintf(plan->tag, sizeof plan->tag, "%.32s-%u", hex, (unsigned)count);
}

static void write_sizes(const struct part_table *table, const struct listed_part *list,
                        size_t count, struct upload_plan *plan)
{
    _cleanup_free_ uint64_t *sizes = xcalloc(count, sizeof *sizes);
    for (size_t i = 0; i < count; i++)
        sizes[i] = part_table_find(table, list[i].number)->size;
    if (!part_sizes_print(sizes, count, plan->parts))
        plan->parts[0] = '\0';
}

/* --- checksums -------------------------------------------------------------------------------- */

static void compose(const struct s3_sum_value *sums, size_t count, struct s3_object_sum *out)
{
    _cleanup_(s3_sum_freep)
    struct s3_sum *s = s3_sum_new(sums[0].type);
    for (size_t i = 0; i < count; i++)
        s3_sum_update(s, sums[i].bytes, s3_sum_size(sums[i].type));
    s3_sum_final(s, &out->value);
    out->parts = (unsigned)count;
}

static void write_sums(const struct part_table *table, const struct s3_sum_kind *kind,
                       const struct listed_part *list, size_t count, struct upload_plan *plan)
{
    _cleanup_free_ struct s3_sum_value *sums = xcalloc(count, sizeof *sums);
    struct s3_object_sum object = {.parts = 0};
    for (size_t i = 0; i < count; i++) {
        const struct part *part = part_table_find(table, list[i].number);
        sums[i] = part->sum;
        if (i == 0)
            object.value = part->sum;
        else if (!kind->is_composite)
            s3_sum_combine(&object.value, &part->sum, part->size);
    }
    if (kind->is_composite)
        compose(sums, count, &object);
    s3_object_sum_print(&object, plan->sum);
    if (!part_sums_print(sums, count, plan->part_sums))
        plan->part_sums[0] = '\0';
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Does the part lie in the body where the parts before it end? */
static bool follows(const struct part *part, uint64_t before)
{
    return part->side == 0 && (uint64_t)(part->number - 1) * part->unit == before;
}

struct upload_plan upload_plan_make(const struct part_table *table, const struct s3_sum_kind *sums,
                                    const struct listed_part *list, size_t count)
{
    struct upload_plan plan = {.verdict = UPLOAD_COMPLETE, .in_place = true};
    if (count == 0)
        return refused(UPLOAD_EMPTY, 0);
    for (size_t i = 0; i < count; i++) {
        enum upload_verdict verdict = judge(table, sums, list, count, i);
        if (verdict != UPLOAD_COMPLETE)
            return refused(verdict, i);
        const struct part *part = part_table_find(table, list[i].number);
        plan.in_place = plan.in_place && follows(part, plan.size);
        plan.size += part->size;
    }
    write_tag(table, list, count, &plan);
    write_sizes(table, list, count, &plan);
    if (sums->is_asked)
        write_sums(table, sums, list, count, &plan);
    return plan;
}
