/* ranks write|read mpiio|posix strided|segmented FILE
 *
 * RECORDS of SIZE bytes, each of one value.  Four ranks write them; any number of ranks reads all
 * of them, each its share, and compares. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WRITERS = 4, SIZE = 4701, EACH = 16, RECORDS = WRITERS * EACH };

static int fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    return 1;
}

static int value(int rank, int index)
{
    return 1 + (rank * 59 + index * 7) % 255;
}

/* Of a record of the file: which rank has written it, and as which of its own. */
static int value_at(int record, int is_strided)
{
    return is_strided ? value(record % WRITERS, record / WRITERS)
                      : value(record / EACH, record % EACH);
}

struct file {
    int fd;
    MPI_File mpi; /* unless it is null */
};

static void open_file(struct file *f, const char *name, int is_mpi, int writes)
{
    MPI_Info info;
    f->mpi = MPI_FILE_NULL;
    if (!is_mpi) {
        f->fd = open(name, writes ? O_RDWR | O_CREAT : O_RDONLY, 0644);
        if (f->fd < 0)
            fail("open");
        return;
    }
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", "disable");
    if (MPI_File_open(MPI_COMM_WORLD, name,
                      writes ? MPI_MODE_RDWR | MPI_MODE_CREATE : MPI_MODE_RDONLY, info,
                      &f->mpi) != MPI_SUCCESS)
        fail("MPI_File_open");
    MPI_Info_free(&info);
}

static void put(struct file *f, int record, int byte)
{
    char data[SIZE];
    const off_t at = (off_t)record * SIZE;
    memset(data, byte, sizeof data);
    if (f->mpi != MPI_FILE_NULL) {
        if (MPI_File_write_at(f->mpi, at, data, SIZE, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            fail("MPI_File_write_at");
    } else if (pwrite(f->fd, data, sizeof data, at) != SIZE) {
        fail("pwrite");
    }
}

static void compare(struct file *f, int record, int byte)
{
    char data[SIZE];
    const off_t at = (off_t)record * SIZE;
    memset(data, 0, sizeof data);
    if (f->mpi != MPI_FILE_NULL)
        MPI_File_read_at(f->mpi, at, data, SIZE, MPI_BYTE, MPI_STATUS_IGNORE);
    else if (pread(f->fd, data, sizeof data, at) != SIZE)
        fail("pread");
    for (int i = 0; i < SIZE; i++) {
        if ((unsigned char)data[i] != byte)
            fail("another byte");
    }
}

static void close_file(struct file *f, int writes)
{
    if (f->mpi != MPI_FILE_NULL) {
        if ((writes && MPI_File_sync(f->mpi) != MPI_SUCCESS) ||
            MPI_File_close(&f->mpi) != MPI_SUCCESS)
            fail("MPI_File_close");
    } else if ((writes && fsync(f->fd) != 0) || close(f->fd) != 0) {
        fail("close");
    }
}

int main(int argc, char **argv)
{
    struct file f;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5)
        return fail("ranks write|read mpiio|posix strided|segmented FILE");
    const int writes = strcmp(argv[1], "write") == 0, is_mpi = strcmp(argv[2], "mpiio") == 0;
    const int is_strided = strcmp(argv[3], "strided") == 0;
    if (writes && ranks != WRITERS)
        return fail("four ranks write");
    open_file(&f, argv[4], is_mpi, writes);
    for (int i = 0; writes && i < EACH; i++)
        put(&f, is_strided ? i * WRITERS + rank : rank * EACH + i, value(rank, i));
    for (int i = rank; !writes && i < RECORDS; i += ranks)
        compare(&f, i, value_at(i, is_strided));
    close_file(&f, writes);
    MPI_Finalize();
    return 0;
}
