/* libplfs-dfc: the calls of PLFS 2.5, on plogs of a dfc cluster.  A program that was written for
 * PLFS is compiled with this header, and linked with -lplfs-dfc.
 *
 * PATHS.  "dfc://BUCKET/NAME", or the path MOUNT/BUCKET/NAME, where MOUNT is the environment's
 * DFC_PLFS_MOUNT ("/plfs" without it).  A "plfs:" before a path is left out.  Nothing is mounted.
 * The cluster is that of the environment, as for dfcctl: DFC_ENDPOINT, DFC_PROFILE and others.
 *
 * RESULTS.  PLFS_SUCCESS or an error; plfs_dfc_error() has the sentence.  Reads and writes return
 * their count through a pointer.
 *
 * WRITERS.  Each process opens the file; each open is a writer (dfc_plog.h), whatever the pid.
 * plfs_sync() and plfs_close() make durable what was written, and others see it then: at their next
 * open, or after their next plfs_sync().  Threads may share an fd; opens and closes of it must not
 * be at the same time.
 *
 * DIFFERENCES.  plfs_flatten_index() merges the index, and fails with PLFS_EBUSY while the file is
 * open for writing.  Objects that are no plogs can be read, not written.  Directories have no mode
 * or owner of their own.  Links, extended attributes, statvfs, renames of directories, and calls
 * that hand over pieces of an index are PLFS_ENOSYS. */
#pragma once

#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <utime.h>

#include "plfs_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct statvfs;
typedef struct Plfs_fd Plfs_fd;
typedef struct Plfs_dirp Plfs_dirp;

typedef enum { PLFS_API, PLFS_POSIX, PLFS_MPIIO } plfs_interface;
typedef enum { CONTAINER, FLAT_FILE, SMALL_FILE, PFT_UNKNOWN } plfs_filetype;

/* They are taken, and change nothing. */
typedef struct {
    char *index_stream;
    int buffer_index;
    plfs_interface pinter;
    int reopen;
    int uniform_restart_enable;
    pid_t uniform_restart_rank;
} Plfs_open_opt;
typedef struct {
    off_t last_offset;
    size_t total_bytes;
    int valid_meta;
    plfs_interface pinter;
    size_t num_procs;
} Plfs_close_opt;

/* The sentence of this thread's last error; "" before the first. */
PLFS_DFC_API const char *plfs_dfc_error(void);

/* ---- open files ---- */

/* *fd NULL: a new one.  Else the same file is opened once more, with flags of the same access. */
PLFS_DFC_API plfs_error_t plfs_open(Plfs_fd **fd, const char *path, int flags, pid_t pid,
                                    mode_t mode, Plfs_open_opt *options);
PLFS_DFC_API plfs_error_t plfs_read(Plfs_fd *fd, char *to, size_t size, off_t offset,
                                    ssize_t *bytes_read);
PLFS_DFC_API plfs_error_t plfs_write(Plfs_fd *fd, const char *data, size_t size, off_t offset,
                                     pid_t pid, ssize_t *bytes_written);
PLFS_DFC_API plfs_error_t plfs_sync(Plfs_fd *fd);
/* *left: how often it is still open; may be NULL.  After an error of the last close it is open. */
PLFS_DFC_API plfs_error_t plfs_close(Plfs_fd *fd, pid_t pid, uid_t uid, int flags,
                                     Plfs_close_opt *options, int *left);
/* Opens by this process; bytes that were written through the fd.  Each may be NULL. */
PLFS_DFC_API plfs_error_t plfs_query(Plfs_fd *fd, size_t *writers, size_t *readers,
                                     size_t *bytes_written, int *lazy_stat);

/* ---- files ---- */

/* fd NULL: the file of the path. */
PLFS_DFC_API plfs_error_t plfs_getattr(Plfs_fd *fd, const char *path, struct stat *st,
                                       int size_only);
PLFS_DFC_API plfs_error_t plfs_trunc(Plfs_fd *fd, const char *path, off_t length, int open_file);
PLFS_DFC_API plfs_error_t plfs_flatten_index(Plfs_fd *fd, const char *path);
PLFS_DFC_API plfs_error_t plfs_create(const char *path, mode_t mode, int flags, pid_t pid);
PLFS_DFC_API plfs_error_t plfs_access(const char *path, int mask);
PLFS_DFC_API plfs_error_t plfs_mode(const char *path, mode_t *mode);
PLFS_DFC_API plfs_error_t plfs_chmod(const char *path, mode_t mode);
PLFS_DFC_API plfs_error_t plfs_chown(const char *path, uid_t uid, gid_t gid);
PLFS_DFC_API plfs_error_t plfs_utime(const char *path, struct utimbuf *times);
PLFS_DFC_API plfs_error_t plfs_rename(const char *from, const char *to);
PLFS_DFC_API plfs_error_t plfs_unlink(const char *path);
PLFS_DFC_API plfs_filetype plfs_get_filetype(const char *path); /* FLAT_FILE: no plog */
PLFS_DFC_API int is_plfs_path(const char *path);

/* ---- directories ---- */

PLFS_DFC_API plfs_error_t plfs_mkdir(const char *path, mode_t mode);
PLFS_DFC_API plfs_error_t plfs_rmdir(const char *path);
PLFS_DFC_API plfs_error_t plfs_opendir_c(const char *path, Plfs_dirp **dir);
/* The next name; "" at the end.  There is no "." and "..". */
PLFS_DFC_API plfs_error_t plfs_readdir_c(Plfs_dirp *dir, char *name, size_t size);
PLFS_DFC_API plfs_error_t plfs_closedir_c(Plfs_dirp *dir);

/* ---- PLFS_ENOSYS ---- */

PLFS_DFC_API plfs_error_t plfs_link(const char *path, const char *to);
PLFS_DFC_API plfs_error_t plfs_symlink(const char *path, const char *to);
PLFS_DFC_API plfs_error_t plfs_readlink(const char *path, char *to, size_t size, int *bytes);
PLFS_DFC_API plfs_error_t plfs_statvfs(const char *path, struct statvfs *out);
PLFS_DFC_API plfs_error_t plfs_getxattr(Plfs_fd *fd, void *value, const char *key, size_t size);
PLFS_DFC_API plfs_error_t plfs_setxattr(Plfs_fd *fd, const void *value, const char *key,
                                        size_t size);
PLFS_DFC_API plfs_error_t plfs_expand_path(const char *path, char **physical);

/* ---- the rest ---- */

/* There is nothing that other opens of this process would not see: they do nothing. */
PLFS_DFC_API plfs_error_t plfs_flush_writes(const char *path);
PLFS_DFC_API plfs_error_t plfs_invalidate_read_cache(const char *path);
PLFS_DFC_API const char *plfs_version(void);
PLFS_DFC_API const char *plfs_tag(void);
PLFS_DFC_API const char *plfs_buildtime(void);
PLFS_DFC_API double plfs_wtime(void); /* seconds since 1970 */

#ifdef __cplusplus
}

#include <set>
#include <string>

/* names: a std::set<std::string>, as in PLFS. */
static inline plfs_error_t plfs_readdir(const char *path, void *names)
{
    char name[1025];
    Plfs_dirp *dir;
    plfs_error_t error = plfs_opendir_c(path, &dir);
    if (error != PLFS_SUCCESS)
        return error;
    while ((error = plfs_readdir_c(dir, name, sizeof name)) == PLFS_SUCCESS && name[0] != '\0')
        static_cast<std::set<std::string> *>(names)->insert(name);
    plfs_closedir_c(dir);
    return error;
}
#endif
