/* An image of the store, opened by the name of its table: its files, and its bytes.
 *
 * An image may be read by several threads at once. */
#pragma once

#include "api/dfc.h"
#include "vdisc/iso_read.h"
#include "vdisc/table.h"

struct vdisc;

/* bucket/key: the table (NAME.vdsc).  The client must outlive the image. */
int vdisc_open(struct dfc_client *c, const char *bucket, const char *key, struct vdisc **v,
               struct dfc_error *err);
/* The table alone: nothing is asked of the header, and there is no vdisc_reader(). */
int vdisc_open_table(struct dfc_client *c, const char *bucket, const char *key, struct vdisc **v,
                     struct dfc_error *err);
void vdisc_close(struct vdisc *v);
DEFINE_CLEANUP(struct vdisc, vdisc_close);

const struct vdisc_table *vdisc_table_of(const struct vdisc *v);
const struct iso_reader *vdisc_reader(const struct vdisc *v);
/* The object of an extent; malloc'ed names. */
int vdisc_object(const struct vdisc *v, uint32_t extent, char **bucket, char **key,
                 struct dfc_error *err);
uint64_t vdisc_block_of(const struct vdisc *v, uint32_t extent); /* its first */
/* The extent that has this block, or UINT32_MAX. */
uint32_t vdisc_extent_of(const struct vdisc *v, uint32_t lba);

/* Bytes of the image, in order.  DFC_PRECONDITION (`image_stale`): an object is another than it was
 * when the image was burned; no byte of it is written.  DFC_CORRUPT: it is shorter, or one that was
 * read whole does not have its checksum; its bytes were written. */
int vdisc_copy(struct vdisc *v, uint64_t offset, uint64_t len, const struct dfc_sink *sink,
               struct dfc_error *err);
/* The same of a file, which is compared also if it shares its object with others. */
int vdisc_copy_file(struct vdisc *v, uint32_t lba, uint64_t size, const struct dfc_sink *sink,
                    struct dfc_error *err);

/* The object of one extent, whole, if it has its tag or its bytes; DFC_CORRUPT where it has another
 * size. */
int vdisc_check(struct vdisc *v, uint32_t extent, const struct dfc_sink *sink,
                struct dfc_error *err);

/* How the reader's functions return what the store said: as a code of common/, with the whole error
 * kept for vdisc_failure(). */
int vdisc_failure(const struct vdisc *v, const struct error *e, struct dfc_error *err);
