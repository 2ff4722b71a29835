/* rows write|read collective|independent FILE
 *
 * A dataset of ROWS rows in one HDF5 file, which the ranks write and read by turns through MPI-IO.
 * A row is as long as a record of the paper's benchmark, less a byte. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 240, COLUMNS = 11750 };

static int rank, ranks;

static void need(int is_right, const char *what)
{
    if (is_right)
        return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static hid_t open_file(const char *name, int writes)
{
    MPI_Info info;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_ds_write", "disable");
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, info);
    const hid_t file = writes ? H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                              : H5Fopen(name, H5F_ACC_RDONLY, access);
    need(file >= 0, "the file is not opened");
    H5Pclose(access);
    MPI_Info_free(&info);
    return file;
}

/* The rows of this rank, row by row. */
static void fill(int *cells, int rows)
{
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < COLUMNS; k++)
            cells[i * COLUMNS + k] = (rank + i * ranks) * COLUMNS + k;
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    need(argc == 4 && ROWS % ranks == 0, "rows write|read collective|independent FILE");
    const int writes = strcmp(argv[1], "write") == 0;
    const hsize_t all[] = {ROWS, COLUMNS}, mine[] = {(hsize_t)(ROWS / ranks), COLUMNS};
    const hsize_t start[] = {(hsize_t)rank, 0}, stride[] = {(hsize_t)ranks, 1};
    const size_t bytes = mine[0] * COLUMNS * sizeof(int);
    int *wanted = malloc(bytes), *cells = calloc(1, bytes);
    fill(wanted, ROWS / ranks);

    const hid_t file = open_file(argv[3], writes);
    const hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, mine, NULL);
    const hid_t how = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(how, strcmp(argv[2], "collective") == 0 ? H5FD_MPIO_COLLECTIVE
                                                             : H5FD_MPIO_INDEPENDENT);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, mine, NULL);
    const hid_t rows = writes ? H5Dcreate2(file, "rows", H5T_NATIVE_INT, space, H5P_DEFAULT,
                                           H5P_DEFAULT, H5P_DEFAULT)
                              : H5Dopen2(file, "rows", H5P_DEFAULT);
    need(rows >= 0, "there is no dataset");
    if (writes)
        need(H5Dwrite(rows, H5T_NATIVE_INT, memory, space, how, wanted) >= 0, "H5Dwrite");
    else
        need(H5Dread(rows, H5T_NATIVE_INT, memory, space, how, cells) >= 0, "H5Dread");
    need(writes || memcmp(cells, wanted, bytes) == 0, "other cells");
    need(H5Dclose(rows) >= 0 && H5Fclose(file) >= 0, "the file is not closed");
    free(wanted);
    free(cells);
    MPI_Finalize();
    return 0;
}
