/* An archive made of members that come one by one, in any output format that keeps members as they
 * are: tars, compressed or not, and zip.
 *
 *     rc = member_writer_new(format_of_extension(".tar.zst"), sink, &w, err);
 *     member_writer_begin(w, &member, err);
 *     member_writer_data(w, data, len, err); ...     // `member.size` bytes in all
 *     member_writer_finish(w, err);                  // everything is in the sink
 *
 * The same members make the same bytes.  Memory is fixed, but for 70 bytes and the name of each
 * member of a zip.  Errors are the sink's, and E_SHARD_UNSUPPORTED for what a format cannot hold;
 * after one only member_writer_free() may be called.  One thread at a time. */
#pragma once

#include <stddef.h>

#include "common/cleanup.h"
#include "sort/base/codec.h"
#include "sort/shard/format.h"
#include "sort/shard/tar_make.h"

struct member_writer;

/* The format whose extension is `extension` ("tar.gz" or ".tar.gz"), or NULL: that of the archive's
 * name.  E_INVALID: there is none that can be written. */
int member_writer_format(const char *extension, const char *name,
                         const struct shard_format_ops **out, struct error *err);
/* Does the format keep members as they are?  Others are made of records (msgpack, TFRecord). */
bool member_writer_takes(const struct shard_format_ops *format);
int member_writer_new(const struct shard_format_ops *format, struct sink to,
                      struct member_writer **out, struct error *err);
/* The one before has all of its bytes. */
int member_writer_begin(struct member_writer *w, const struct tar_made *m, struct error *err);
int member_writer_data(struct member_writer *w, const void *data, size_t len, struct error *err);
int member_writer_finish(struct member_writer *w, struct error *err);
void member_writer_free(struct member_writer *w);
DEFINE_CLEANUP(struct member_writer, member_writer_free);
