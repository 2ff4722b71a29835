/* ranks write|read mpiio|posix|plfs strided|segmented FILE
 *
 * RECORDS of SIZE bytes, each of one value.  Four ranks write them; any number of ranks reads all
 * of them, each its share, and compares. */
#include <fcntl.h>
#include <mpi.h>
#include <plfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WRITERS = 4, SIZE = 4701, EACH = 16, RECORDS = WRITERS * EACH };

static int rank, ranks;

static int fail(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

static int value(int writer, int index)
{
    return 1 + (writer * 59 + index * 7) % 255;
}

/* Of a record of the file: which rank has written it, and as which of its own. */
static int value_at(int record, int is_strided)
{
    return is_strided ? value(record % WRITERS, record / WRITERS)
                      : value(record / EACH, record % EACH);
}

/* ---- MPI-IO ---- */

static MPI_File mpi;

static void mpiio_open(const char *name, int writes)
{
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", "disable");
    if (MPI_File_open(MPI_COMM_WORLD, name,
                      writes ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDONLY, info,
                      &mpi) != MPI_SUCCESS)
        fail("MPI_File_open");
    MPI_Info_free(&info);
}

static void mpiio_put(off_t at, const char *data)
{
    if (MPI_File_write_at(mpi, at, data, SIZE, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        fail("MPI_File_write_at");
}

static void mpiio_get(off_t at, char *data)
{
    if (MPI_File_read_at(mpi, at, data, SIZE, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        fail("MPI_File_read_at");
}

static void mpiio_close(int writes)
{
    if ((writes && MPI_File_sync(mpi) != MPI_SUCCESS) || MPI_File_close(&mpi) != MPI_SUCCESS)
        fail("MPI_File_close");
}

/* ---- POSIX ---- */

static int fd;

static void posix_open(const char *name, int writes)
{
    fd = open(name, writes ? O_RDWR | O_CREAT : O_RDONLY, 0644);
    if (fd < 0)
        fail("open");
}

static void posix_put(off_t at, const char *data)
{
    if (pwrite(fd, data, SIZE, at) != SIZE)
        fail("pwrite");
}

static void posix_get(off_t at, char *data)
{
    if (pread(fd, data, SIZE, at) != SIZE)
        fail("pread");
}

static void posix_close(int writes)
{
    if ((writes && fsync(fd) != 0) || close(fd) != 0)
        fail("close");
}

/* ---- PLFS: rank 0 makes the file, as PLFS's driver of MPI-IO does ---- */

static Plfs_fd *plfs;

static void plfs_begin(const char *name, int writes)
{
    const int flags = writes ? O_RDWR | O_CREAT : O_RDONLY;
    if (rank == 0 && plfs_open(&plfs, name, flags, rank, 0644, NULL) != PLFS_SUCCESS)
        fail(plfs_dfc_error());
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank != 0 && plfs_open(&plfs, name, flags & ~O_CREAT, rank, 0644, NULL) != PLFS_SUCCESS)
        fail(plfs_dfc_error());
}

static void plfs_put(off_t at, const char *data)
{
    ssize_t done;
    if (plfs_write(plfs, data, SIZE, at, rank, &done) != PLFS_SUCCESS || done != SIZE)
        fail(plfs_dfc_error());
}

static void plfs_get(off_t at, char *data)
{
    ssize_t done;
    if (plfs_read(plfs, data, SIZE, at, &done) != PLFS_SUCCESS || done != SIZE)
        fail(plfs_dfc_error());
}

static void plfs_end(int writes)
{
    if ((writes && plfs_sync(plfs) != PLFS_SUCCESS) ||
        plfs_close(plfs, rank, getuid(), 0, NULL, NULL) != PLFS_SUCCESS)
        fail(plfs_dfc_error());
}

static const struct way {
    const char *name;
    void (*open)(const char *name, int writes);
    void (*put)(off_t at, const char *data);
    void (*get)(off_t at, char *data);
    void (*close)(int writes);
} ways[] = {
    {"mpiio", mpiio_open, mpiio_put, mpiio_get, mpiio_close},
    {"posix", posix_open, posix_put, posix_get, posix_close},
    {"plfs", plfs_begin, plfs_put, plfs_get, plfs_end},
};

static const struct way *way_of(const char *name)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    }
    return NULL;
}

static void put(const struct way *way, int record, int byte)
{
    char data[SIZE];
    memset(data, byte, sizeof data);
    way->put((off_t)record * SIZE, data);
}

static void compare(const struct way *way, int record, int byte)
{
    char data[SIZE];
    memset(data, 0, sizeof data);
    way->get((off_t)record * SIZE, data);
    for (int i = 0; i < SIZE; i++) {
        if ((unsigned char)data[i] != byte)
            fail("another byte");
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const struct way *way = argc == 5 ? way_of(argv[2]) : NULL;
    if (way == NULL)
        return fail("ranks write|read mpiio|posix|plfs strided|segmented FILE");
    const int writes = strcmp(argv[1], "write") == 0;
    const int is_strided = strcmp(argv[3], "strided") == 0;
    if (writes && ranks != WRITERS)
        return fail("four ranks write");
    way->open(argv[4], writes);
    for (int i = 0; writes && i < EACH; i++)
        put(way, is_strided ? i * WRITERS + rank : rank * EACH + i, value(rank, i));
    for (int i = rank; !writes && i < RECORDS; i += ranks)
        compare(way, i, value_at(i, is_strided));
    way->close(writes);
    MPI_Finalize();
    return 0;
}
