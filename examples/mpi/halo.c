/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * halo.c - heat spreads over a square cut into blocks, one a rank.
 *
 *      +-----+-----+   Each block keeps a border of its neighbours' cells (the
 *      |  0  |  1  |   halo).  Before every step the ranks exchange borders: rows
 *      +-----+-----+   as they lie in memory, columns by a strided datatype.
 *      |  2  |  3  |
 *      +-----+-----+   At the end each rank computes the whole square alone and
 *                      compares: every bit must be the same.
 *
 *     mpicc halo.c -o halo
 *     MPIR_CVAR_NOLOCAL=1 MPIR_CVAR_NEMESIS_NETMOD=glex mpiexec -n 4 ./halo
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

#define N     240 /* divides by all small numbers of ranks */
#define STEPS 50

/* A field of rows x cols cells with a border of one. */
struct field {
	int rows, cols;
	double *cell;
};

static double *at(const struct field *f, int row, int col)
{
	return &f->cell[(row + 1) * (f->cols + 2) + col + 1];
}

static struct field new_field(int rows, int cols)
{
	struct field f = {rows, cols, calloc((size_t)(rows + 2) * (size_t)(cols + 2), sizeof(double))};

	if (!f.cell) {
		fprintf(stderr, "halo: no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return f;
}

/* The cells of a block whose first one is (row0, col0) of the square.  The border stays 0: cold. */
static void heat(struct field *f, int row0, int col0)
{
	for (int r = 0; r < f->rows; r++)
		for (int c = 0; c < f->cols; c++)
			*at(f, r, c) = ((r + row0) * 37 + (c + col0) * 101) % 1000;
}

static void step(const struct field *from, struct field *to)
{
	for (int r = 0; r < from->rows; r++)
		for (int c = 0; c < from->cols; c++)
			*at(to, r, c) = 0.5 * *at(from, r, c) + 0.125 * (*at(from, r - 1, c) + *at(from, r + 1, c) +
									 *at(from, r, c - 1) + *at(from, r, c + 1));
}

/* Four shifts.  At the edge of the square the neighbour is MPI_PROC_NULL and nothing moves. */
static void exchange(MPI_Comm grid, struct field *f, MPI_Datatype column)
{
	int up, down, left, right, rows = f->rows, cols = f->cols;

	MPI_Cart_shift(grid, 0, 1, &up, &down);
	MPI_Cart_shift(grid, 1, 1, &left, &right);
	MPI_Sendrecv(at(f, 0, 0), cols, MPI_DOUBLE, up, 0, at(f, rows, 0), cols, MPI_DOUBLE, down, 0, grid,
		     MPI_STATUS_IGNORE);
	MPI_Sendrecv(at(f, rows - 1, 0), cols, MPI_DOUBLE, down, 1, at(f, -1, 0), cols, MPI_DOUBLE, up, 1, grid,
		     MPI_STATUS_IGNORE);
	MPI_Sendrecv(at(f, 0, 0), 1, column, left, 2, at(f, 0, cols), 1, column, right, 2, grid, MPI_STATUS_IGNORE);
	MPI_Sendrecv(at(f, 0, cols - 1), 1, column, right, 3, at(f, 0, -1), 1, column, left, 3, grid,
		     MPI_STATUS_IGNORE);
}

static void swap(struct field *a, struct field *b)
{
	struct field t = *a;

	*a = *b;
	*b = t;
}

/* How many cells of the block differ from the same square computed by one rank. */
static int compare(const struct field *block, int row0, int col0)
{
	struct field now = new_field(N, N), next = new_field(N, N);
	int bad = 0;

	heat(&now, 0, 0);
	for (int i = 0; i < STEPS; i++) {
		step(&now, &next);
		swap(&now, &next);
	}
	for (int r = 0; r < block->rows; r++)
		for (int c = 0; c < block->cols; c++)
			bad += *at(block, r, c) != *at(&now, r + row0, c + col0);
	free(now.cell);
	free(next.cell);
	return bad;
}

int main(int argc, char **argv)
{
	int rank, size, dims[2] = {0, 0}, wrap[2] = {0, 0}, where[2], bad, all_bad;
	struct field now, next;
	MPI_Datatype column;
	MPI_Comm grid;
	double start;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Dims_create(size, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, wrap, 1, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_coords(grid, rank, 2, where);
	if (N % dims[0] || N % dims[1]) {
		if (rank == 0)
			fprintf(stderr, "halo: %d cells do not divide by %d x %d ranks\n", N, dims[0], dims[1]);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	now = new_field(N / dims[0], N / dims[1]);
	next = new_field(now.rows, now.cols);
	heat(&now, where[0] * now.rows, where[1] * now.cols);
	MPI_Type_vector(now.rows, 1, now.cols + 2, MPI_DOUBLE, &column);
	MPI_Type_commit(&column);

	start = MPI_Wtime();
	for (int i = 0; i < STEPS; i++) {
		exchange(grid, &now, column);
		step(&now, &next);
		swap(&now, &next);
	}
	start = MPI_Wtime() - start;
	bad = compare(&now, where[0] * now.rows, where[1] * now.cols);
	MPI_Allreduce(&bad, &all_bad, 1, MPI_INT, MPI_SUM, grid);
	if (rank == 0)
		printf("%d x %d ranks, %d steps in %.3f s, %d cells wrong\n%s\n", dims[0], dims[1], STEPS, start,
		       all_bad, all_bad ? "FAILED" : "ok");
	MPI_Type_free(&column);
	free(now.cell);
	free(next.cell);
	MPI_Comm_free(&grid);
	MPI_Finalize();
	return all_bad != 0;
}
