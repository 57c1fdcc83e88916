/* SPDX-License-Identifier: BSD-2-Clause */
/* reduce.c - see reduce.h. */
#include "emulator/nic/reduce.h"

#include <glex.h>
#include <string.h>

#include "emulator/nic/together.h"

static_assert(sizeof(union glex_coll_data_loc) == 16, "a unit of an operand");
static_assert(GLEX_COLL_REDUCE_MAX_DATA_UNITS == 6 && GLEX_COLL_MAX_BRANCH_DEGREE == EMU_OPERANDS, "limits of glex.h");

typedef void (*combine_fn)(union glex_coll_data_loc *acc, const union glex_coll_data_loc *with);

#define SUM(name, member)                                                                                              \
	static void name(union glex_coll_data_loc *acc, const union glex_coll_data_loc *with)                          \
	{                                                                                                              \
		acc->member.data += with->member.data;                                                                 \
		acc->member.location = 0;                                                                              \
	}

#define NEVER(x) false

/* Unlike with a plain comparison, a NaN loses against whatever is none. */
#define EXTREME(name, member, better, is_nan)                                                                          \
	static void name(union glex_coll_data_loc *acc, const union glex_coll_data_loc *with)                          \
	{                                                                                                              \
		bool no_acc = is_nan(acc->member.data), no_with = is_nan(with->member.data);                           \
		bool equal = (no_acc && no_with) || acc->member.data == with->member.data;                             \
                                                                                                                       \
		if (equal ? with->member.location < acc->member.location                                               \
			  : !no_with && (no_acc || with->member.data better acc->member.data))                         \
			*acc = *with;                                                                                  \
	}

#define LOGICAL(name, member, expression)                                                                              \
	static void name(union glex_coll_data_loc *acc, const union glex_coll_data_loc *with)                          \
	{                                                                                                              \
		bool a = acc->member.data != 0, b = with->member.data != 0;                                            \
                                                                                                                       \
		acc->member.data = (expression);                                                                       \
		acc->member.location = 0;                                                                              \
	}

#define BITWISE(name, member, op)                                                                                      \
	static void name(union glex_coll_data_loc *acc, const union glex_coll_data_loc *with)                          \
	{                                                                                                              \
		acc->member.data op with->member.data;                                                                 \
		acc->member.location = 0;                                                                              \
	}

SUM(sum_float, float_s)
SUM(sum_double, double_s)
SUM(sum_32, uint32_s) /* signed ones too: they wrap */
SUM(sum_64, uint64_s)
EXTREME(max_float, float_s, >, __builtin_isnan)
EXTREME(max_double, double_s, >, __builtin_isnan)
EXTREME(min_float, float_s, <, __builtin_isnan)
EXTREME(min_double, double_s, <, __builtin_isnan)
EXTREME(max_int32, int32_s, >, NEVER)
EXTREME(max_int64, int64_s, >, NEVER)
EXTREME(min_int32, int32_s, <, NEVER)
EXTREME(min_int64, int64_s, <, NEVER)
EXTREME(max_uint32, uint32_s, >, NEVER)
EXTREME(max_uint64, uint64_s, >, NEVER)
EXTREME(min_uint32, uint32_s, <, NEVER)
EXTREME(min_uint64, uint64_s, <, NEVER)
LOGICAL(land_32, uint32_s, a &&b)
LOGICAL(land_64, uint64_s, a &&b)
LOGICAL(lor_32, uint32_s, a || b)
LOGICAL(lor_64, uint64_s, a || b)
LOGICAL(lxor_32, uint32_s, a != b)
LOGICAL(lxor_64, uint64_s, a != b)
BITWISE(band_32, uint32_s, &=)
BITWISE(band_64, uint64_s, &=)
BITWISE(bor_32, uint32_s, |=)
BITWISE(bor_64, uint64_s, |=)
BITWISE(bxor_32, uint32_s, ^=)
BITWISE(bxor_64, uint64_s, ^=)

#define OPS (GLEX_COLL_REDUCE_BXOR + 1)

static const combine_fn combine[OPS][2] = {
	[GLEX_COLL_REDUCE_SUM_FLOAT] = {sum_float, sum_double},
	[GLEX_COLL_REDUCE_MAXLOC_FLOAT] = {max_float, max_double},
	[GLEX_COLL_REDUCE_MINLOC_FLOAT] = {min_float, min_double},
	[GLEX_COLL_REDUCE_SUM_SIGNED] = {sum_32, sum_64},
	[GLEX_COLL_REDUCE_MAXLOC_SIGNED] = {max_int32, max_int64},
	[GLEX_COLL_REDUCE_MINLOC_SIGNED] = {min_int32, min_int64},
	[GLEX_COLL_REDUCE_SUM_UNSIGNED] = {sum_32, sum_64},
	[GLEX_COLL_REDUCE_MAXLOC_UNSIGNED] = {max_uint32, max_uint64},
	[GLEX_COLL_REDUCE_MINLOC_UNSIGNED] = {min_uint32, min_uint64},
	[GLEX_COLL_REDUCE_LAND] = {land_32, land_64},
	[GLEX_COLL_REDUCE_LOR] = {lor_32, lor_64},
	[GLEX_COLL_REDUCE_LXOR] = {lxor_32, lxor_64},
	[GLEX_COLL_REDUCE_BAND] = {band_32, band_64},
	[GLEX_COLL_REDUCE_BOR] = {bor_32, bor_64},
	[GLEX_COLL_REDUCE_BXOR] = {bxor_32, bxor_64},
};

bool emu_is_operand(const void *data, uint32_t len)
{
	struct emu_operand head;

	if (len < EMU_OPERAND_HEAD)
		return false;
	memcpy(&head, data, EMU_OPERAND_HEAD);
	return head.magic == EMU_OPERAND_MAGIC && head.count <= GLEX_COLL_REDUCE_MAX_DATA_UNITS && head.bits <= 1 &&
	       head.op < OPS && len == emu_operand_len(&head);
}

/*
 * Who executes has rounding, treatment of the smallest numbers and traps of his own (a
 * program linked with -ffast-math, or one that looks for overflows), and operands are
 * not his: they are combined as everywhere else, and leave no trace.
 */
#if defined(__x86_64__)

#define MXCSR_USUAL 0x1f80u

static uint32_t usual_floats(void)
{
	uint32_t was = __builtin_ia32_stmxcsr();

	if (was != MXCSR_USUAL)
		__builtin_ia32_ldmxcsr(MXCSR_USUAL);
	return was;
}

static void own_floats(uint32_t was)
{
	if (__builtin_ia32_stmxcsr() != was)
		__builtin_ia32_ldmxcsr(was);
}

#else

static uint32_t usual_floats(void)
{
	return 0;
}

static void own_floats(uint32_t was)
{
	(void)was;
}

#endif

EMU_TOGETHER bool emu_reduce(struct emu_operand *acc, const struct emu_operand *with)
{
	combine_fn fn = combine[acc->op][acc->bits];
	bool floats = acc->op <= GLEX_COLL_REDUCE_MINLOC_FLOAT;
	union glex_coll_data_loc a, b;
	uint32_t i, was;

	if (acc->op != with->op || acc->bits != with->bits || acc->count != with->count)
		return false;
	was = floats ? usual_floats() : 0;
	for (i = 0; i < acc->count; i++) {
		memcpy(&a, acc->unit[i], sizeof(a));
		memcpy(&b, with->unit[i], sizeof(b));
		fn(&a, &b);
		memcpy(acc->unit[i], &a, sizeof(a));
	}
	if (floats)
		own_floats(was);
	return true;
}

struct key {
	uint32_t order;
	uint64_t src;
};

static struct key key_of(const void *data, uint64_t src)
{
	struct key key = {.src = src};

	memcpy(&key.order, (const unsigned char *)data + offsetof(struct emu_operand, order), sizeof(key.order));
	return key;
}

static bool is_before(const struct key *a, const struct key *b)
{
	return a->order != b->order ? a->order < b->order : a->src < b->src;
}

/* What is to be combined, in its order: index n stands for the own operand. */
static void sort(uint32_t order[EMU_OPERANDS + 1], const void *own, uint64_t src, const struct emu_coll_kept *kept,
		 uint32_t n)
{
	struct key key[EMU_OPERANDS + 1];
	uint32_t i, j;

	key[n] = key_of(own, src);
	order[0] = n;
	for (i = 0; i < n; i++) {
		key[i] = key_of(kept[i].data, kept[i].src);
		for (j = i + 1; j > 0 && is_before(&key[i], &key[order[j - 1]]); j--)
			order[j] = order[j - 1];
		order[j] = i;
	}
}

bool emu_reduce_all(struct emu_operand *result, const void *own, uint32_t own_len, uint64_t src,
		    const struct emu_coll_kept *kept, uint32_t n)
{
	uint32_t order[EMU_OPERANDS + 1], i;
	struct emu_operand with;

	if (!emu_is_operand(own, own_len))
		return false;
	sort(order, own, src, kept, n);
	for (i = 0; i <= n; i++) {
		const void *data = order[i] == n ? own : kept[order[i]].data;
		uint32_t len = order[i] == n ? own_len : kept[order[i]].len;

		if (len > sizeof(with))
			return false;
		memset(&with, 0, sizeof(with));
		memcpy(&with, data, len);
		if (!emu_is_operand(&with, len)) /* of the copy: the other may change */
			return false;
		if (i == 0)
			*result = with;
		else if (!emu_reduce(result, &with))
			return false;
	}
	memcpy(&with, own, EMU_OPERAND_HEAD);
	/* How many will meet where the result goes, and its place there, are for its sender to say. */
	result->degree = with.degree;
	result->order = with.order;
	return true;
}
