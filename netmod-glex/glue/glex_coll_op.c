/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glex_coll_op.c - which MPI reductions the NIC can do, and their operands in its form.
 *
 * What it can is decided by operation, type and count alone, which all ranks of a
 * communicator give alike.  The NIC knows numbers of 32 and 64 bits: shorter ones are
 * widened, which changes neither sums (modulo their width) nor comparisons.  The index
 * of a pair is signed for MPI, and not for the NIC: its sign bit is turned over.
 */
#include "glex_impl.h"
#include "glex_release.h"

enum MPID_nem_glex_class {
	MPID_NEM_GLEX_FLOAT,
	MPID_NEM_GLEX_SIGNED,
	MPID_NEM_GLEX_UNSIGNED,
	MPID_NEM_GLEX_TRUTH, /* neither sums nor bits */
	MPID_NEM_GLEX_BITS,  /* nothing but bits */
	MPID_NEM_GLEX_FLOAT_PAIR,
	MPID_NEM_GLEX_SIGNED_PAIR,
};

#define MPID_NEM_GLEX_SIGN 0x80000000u

/* Those asked for most come first. */
static const struct {
	MPI_Datatype type;
	uint8_t class;
	uint8_t size; /* of a pair's value; of all others MPICH knows it */
} MPID_nem_glex_types[] = {
#ifdef MPIR_DATATYPE_REPLACE_BUILTIN /* by representation, see glex_release.h */
	{MPIR_FLOAT64, MPID_NEM_GLEX_FLOAT, 0},
	{MPIR_INT32, MPID_NEM_GLEX_SIGNED, 0},
	{MPIR_FLOAT32, MPID_NEM_GLEX_FLOAT, 0},
	{MPIR_INT64, MPID_NEM_GLEX_SIGNED, 0},
	{MPIR_UINT32, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPIR_UINT64, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPIR_INT16, MPID_NEM_GLEX_SIGNED, 0},
	{MPIR_INT8, MPID_NEM_GLEX_SIGNED, 0},
	{MPIR_UINT16, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPIR_UINT8, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPIR_2INT32, MPID_NEM_GLEX_SIGNED_PAIR, sizeof(int)},
#else
	{MPI_DOUBLE, MPID_NEM_GLEX_FLOAT, 0},
	{MPI_INT, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_FLOAT, MPID_NEM_GLEX_FLOAT, 0},
	{MPI_LONG, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_LONG_LONG, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_UNSIGNED, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_UNSIGNED_LONG, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_UNSIGNED_LONG_LONG, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_DOUBLE_PRECISION, MPID_NEM_GLEX_FLOAT, 0},
	{MPI_REAL, MPID_NEM_GLEX_FLOAT, 0},
	{MPI_INTEGER, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_INT32_T, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_INT64_T, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_UINT32_T, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_UINT64_T, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_AINT, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_OFFSET, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_COUNT, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_SHORT, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_INT16_T, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_SIGNED_CHAR, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_CHAR, (char)-1 < 0 ? MPID_NEM_GLEX_SIGNED : MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_INT8_T, MPID_NEM_GLEX_SIGNED, 0},
	{MPI_UNSIGNED_SHORT, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_UINT16_T, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_UNSIGNED_CHAR, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_UINT8_T, MPID_NEM_GLEX_UNSIGNED, 0},
	{MPI_BYTE, MPID_NEM_GLEX_BITS, 0},
	{MPI_C_BOOL, MPID_NEM_GLEX_TRUTH, 0},
	{MPI_2INT, MPID_NEM_GLEX_SIGNED_PAIR, sizeof(int)},
#endif
	{MPI_DOUBLE_INT, MPID_NEM_GLEX_FLOAT_PAIR, sizeof(double)},
	{MPI_FLOAT_INT, MPID_NEM_GLEX_FLOAT_PAIR, sizeof(float)},
	{MPI_LONG_INT, MPID_NEM_GLEX_SIGNED_PAIR, sizeof(long)},
	{MPI_SHORT_INT, MPID_NEM_GLEX_SIGNED_PAIR, sizeof(short)},
};

/* The operation of the NIC, or -1. */
static int MPID_nem_glex_op_of(MPI_Op op, unsigned class)
{
	int pair = class == MPID_NEM_GLEX_FLOAT_PAIR || class == MPID_NEM_GLEX_SIGNED_PAIR;
	int number = class <= MPID_NEM_GLEX_UNSIGNED, first;

	first = class == MPID_NEM_GLEX_FLOAT || class == MPID_NEM_GLEX_FLOAT_PAIR ? GLEX_COLL_REDUCE_SUM_FLOAT
		: class == MPID_NEM_GLEX_UNSIGNED				  ? GLEX_COLL_REDUCE_SUM_UNSIGNED
										  : GLEX_COLL_REDUCE_SUM_SIGNED;
	if (op == MPI_MAXLOC || op == MPI_MINLOC)
		return pair ? first + 1 + (op == MPI_MINLOC) : -1;
	if (op == MPI_SUM || op == MPI_MAX || op == MPI_MIN)
		return number ? first + (op == MPI_SUM ? 0 : op == MPI_MAX ? 1 : 2) : -1;
	if (class == MPID_NEM_GLEX_FLOAT || pair)
		return -1;
	if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR)
		return class == MPID_NEM_GLEX_BITS ? -1
		       : op == MPI_LAND		   ? GLEX_COLL_REDUCE_LAND
		       : op == MPI_LOR		   ? GLEX_COLL_REDUCE_LOR
						   : GLEX_COLL_REDUCE_LXOR;
	if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR)
		return class == MPID_NEM_GLEX_TRUTH ? -1
		       : op == MPI_BAND		    ? GLEX_COLL_REDUCE_BAND
		       : op == MPI_BOR		    ? GLEX_COLL_REDUCE_BOR
						    : GLEX_COLL_REDUCE_BXOR;
	return -1;
}

int MPID_nem_glex_operand(MPI_Datatype type, MPI_Op op, struct MPID_nem_glex_operand *operand)
{
	size_t i, n = sizeof(MPID_nem_glex_types) / sizeof(MPID_nem_glex_types[0]);
	MPI_Aint extent;
	unsigned class;
	int which;

	if (type == MPI_DATATYPE_NULL)
		return 0;
	for (i = 0; i < n && MPID_nem_glex_types[i].type != MPID_nem_glex_plain(type); i++)
		;
	if (i == n)
		return 0;
	class = MPID_nem_glex_types[i].class;
	which = MPID_nem_glex_op_of(op, class);
	if (which < 0)
		return 0;
	MPIR_Datatype_get_extent_macro(type, extent);
	operand->pair = MPID_nem_glex_types[i].size != 0;
	operand->size = operand->pair ? MPID_nem_glex_types[i].size : (uint8_t)extent;
	operand->extent = (uint8_t)extent;
	operand->is_signed = class == MPID_NEM_GLEX_SIGNED || class == MPID_NEM_GLEX_SIGNED_PAIR;
	operand->op = (enum glex_coll_reduce_op)which;
	operand->bits = operand->size == 8 ? GLEX_COLL_REDUCE_DATA_BITS_64 : GLEX_COLL_REDUCE_DATA_BITS_32;
	return operand->size <= 8 && (operand->size & (operand->size - 1)) == 0 &&
	       (class != MPID_NEM_GLEX_FLOAT || operand->size >= 4);
}

/* The index lies behind the value, where an int may. */
static size_t MPID_nem_glex_index_at(const struct MPID_nem_glex_operand *operand)
{
	return operand->size < sizeof(int) ? sizeof(int) : operand->size;
}

static uint32_t MPID_nem_glex_widen(const struct MPID_nem_glex_operand *operand, const void *from)
{
	uint16_t two;
	uint8_t one;

	if (operand->size == 1) {
		memcpy(&one, from, 1);
		return operand->is_signed ? (uint32_t)(int8_t)one : one;
	}
	memcpy(&two, from, 2);
	return operand->is_signed ? (uint32_t)(int16_t)two : two;
}

void MPID_nem_glex_operand_load(const struct MPID_nem_glex_operand *operand, const void *buf, uint32_t count,
				union glex_coll_data_loc *units)
{
	const unsigned char *from = buf;
	uint32_t i, index = 0;

	for (i = 0; i < count; i++, from += operand->extent) {
		memset(&units[i], 0, sizeof(units[i]));
		if (operand->size < 4)
			units[i].uint32_s.data = MPID_nem_glex_widen(operand, from);
		else
			memcpy(&units[i], from, operand->size);
		if (operand->pair) {
			memcpy(&index, from + MPID_nem_glex_index_at(operand), sizeof(index));
			index ^= MPID_NEM_GLEX_SIGN;
		}
		if (operand->size == 8)
			units[i].uint64_s.location = index;
		else
			units[i].uint32_s.location = index;
	}
}

void MPID_nem_glex_operand_store(const struct MPID_nem_glex_operand *operand, const union glex_coll_data_loc *units,
				 uint32_t count, void *buf)
{
	unsigned char *to = buf;
	uint32_t i, index;

	for (i = 0; i < count; i++, to += operand->extent) {
		uint8_t one = (uint8_t)units[i].uint32_s.data;
		uint16_t two = (uint16_t)units[i].uint32_s.data;

		memcpy(to,
		       operand->size == 1   ? (const void *)&one
		       : operand->size == 2 ? (const void *)&two
					    : &units[i],
		       operand->size);
		if (!operand->pair)
			continue;
		index = (operand->size == 8 ? units[i].uint64_s.location : units[i].uint32_s.location) ^
			MPID_NEM_GLEX_SIGN;
		memcpy(to + MPID_nem_glex_index_at(operand), &index, sizeof(index));
	}
}
