/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_reduce.c - what operands come to, bit by bit, against a reference that is
 * written the plain way: every operation and width, values at their edges, ties,
 * NaNs, any order of arrival.
 */
#include <math.h>

#include "emulator/nic/reduce.h"
#include "unit.h"

#include <glex.h>

#define OPS (GLEX_COLL_REDUCE_BXOR + 1)

static uint32_t state = 1;

static uint64_t any64(void)
{
	static const uint64_t edges[] = {0,
					 1,
					 UINT64_MAX,
					 INT64_MAX,
					 (uint64_t)INT64_MIN,
					 INT32_MAX,
					 0x80000000u,
					 UINT32_MAX,
					 UINT64_C(0xffffffff00000000)};
	uint32_t pick = unit_random(&state) % 20;

	if (pick < sizeof(edges) / sizeof(edges[0]))
		return edges[pick];
	return (uint64_t)unit_random(&state) << 40 ^ (uint64_t)unit_random(&state) << 20 ^ unit_random(&state);
}

static double any_double(void)
{
	static const double edges[] = {0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 1e-310, 1e16, -1e16};
	uint32_t pick = unit_random(&state) % 16;

	if (pick < sizeof(edges) / sizeof(edges[0]))
		return edges[pick];
	if (pick == 9)
		return (double)NAN;
	if (pick == 10)
		return (double)INFINITY;
	return ((double)unit_random(&state) - 8e6) / 3;
}

static bool is_float(uint32_t op)
{
	return op <= GLEX_COLL_REDUCE_MINLOC_FLOAT;
}

/* Few locations and values, so that there are ties. */
static union glex_coll_data_loc any_unit(uint32_t op, bool wide)
{
	uint32_t location = unit_random(&state) % 4;
	union glex_coll_data_loc unit;

	memset(&unit, 0, sizeof(unit));
	if (is_float(op) && wide)
		unit.double_s.data = any_double();
	else if (is_float(op))
		unit.float_s.data = (float)any_double();
	else if (wide)
		unit.uint64_s.data = any64();
	else
		unit.uint32_s.data = (uint32_t)any64();
	*(wide ? &unit.uint64_s.location : &unit.uint32_s.location) = location;
	return unit;
}

/* ---- the reference -------------------------------------------------------------- */

#define PICK(member, better)                                                                                           \
	(isnan((double)a.member.data) && isnan((double)b.member.data) ? b.member.location < a.member.location          \
	 : isnan((double)a.member.data)				      ? true                                           \
	 : isnan((double)b.member.data)				      ? false                                          \
	 : a.member.data == b.member.data			      ? b.member.location < a.member.location          \
								      : b.member.data better a.member.data)

#define BY_WIDTH(out, wide, m64, m32, expression64, expression32)                                                      \
	do {                                                                                                           \
		if (wide)                                                                                              \
			(out).m64.data = (expression64);                                                               \
		else                                                                                                   \
			(out).m32.data = (expression32);                                                               \
	} while (0)

/* long: one operation after the other */
static union glex_coll_data_loc reference(uint32_t op, bool wide, union glex_coll_data_loc a,
					  union glex_coll_data_loc b)
{
	union glex_coll_data_loc r;
	bool x = wide ? a.uint64_s.data : a.uint32_s.data, y = wide ? b.uint64_s.data : b.uint32_s.data;

	memset(&r, 0, sizeof(r));
	switch (op) {
	case GLEX_COLL_REDUCE_MAXLOC_FLOAT:
		return (wide ? PICK(double_s, >) : PICK(float_s, >)) ? b : a;
	case GLEX_COLL_REDUCE_MINLOC_FLOAT:
		return (wide ? PICK(double_s, <) : PICK(float_s, <)) ? b : a;
	case GLEX_COLL_REDUCE_MAXLOC_SIGNED:
		return (wide ? PICK(int64_s, >) : PICK(int32_s, >)) ? b : a;
	case GLEX_COLL_REDUCE_MINLOC_SIGNED:
		return (wide ? PICK(int64_s, <) : PICK(int32_s, <)) ? b : a;
	case GLEX_COLL_REDUCE_MAXLOC_UNSIGNED:
		return (wide ? PICK(uint64_s, >) : PICK(uint32_s, >)) ? b : a;
	case GLEX_COLL_REDUCE_MINLOC_UNSIGNED:
		return (wide ? PICK(uint64_s, <) : PICK(uint32_s, <)) ? b : a;
	case GLEX_COLL_REDUCE_SUM_FLOAT:
		BY_WIDTH(r, wide, double_s, float_s, a.double_s.data + b.double_s.data,
			 a.float_s.data + b.float_s.data);
		return r;
	case GLEX_COLL_REDUCE_SUM_SIGNED:
	case GLEX_COLL_REDUCE_SUM_UNSIGNED:
		BY_WIDTH(r, wide, uint64_s, uint32_s, a.uint64_s.data + b.uint64_s.data,
			 a.uint32_s.data + b.uint32_s.data);
		return r;
	case GLEX_COLL_REDUCE_LAND:
		BY_WIDTH(r, wide, uint64_s, uint32_s, x && y, x && y);
		return r;
	case GLEX_COLL_REDUCE_LOR:
		BY_WIDTH(r, wide, uint64_s, uint32_s, x || y, x || y);
		return r;
	case GLEX_COLL_REDUCE_LXOR:
		BY_WIDTH(r, wide, uint64_s, uint32_s, x ^ y, x ^ y);
		return r;
	case GLEX_COLL_REDUCE_BAND:
		r.uint64_s.data = a.uint64_s.data & b.uint64_s.data;
		break;
	case GLEX_COLL_REDUCE_BOR:
		r.uint64_s.data = a.uint64_s.data | b.uint64_s.data;
		break;
	default:
		r.uint64_s.data = a.uint64_s.data ^ b.uint64_s.data;
		break;
	}
	if (!wide)
		r.uint32_s.location = 0;
	return r;
}

/* ---- tests -------------------------------------------------------------------------- */

static struct emu_operand make(uint32_t op, bool wide, uint32_t count)
{
	struct emu_operand o = {.magic = EMU_OPERAND_MAGIC, .count = (uint8_t)count, .bits = wide, .op = (uint8_t)op};

	for (uint32_t i = 0; i < count; i++) {
		union glex_coll_data_loc unit = any_unit(op, wide);

		memcpy(o.unit[i], &unit, sizeof(unit));
	}
	return o;
}

/* What of a unit means something. */
static size_t meaning(bool wide)
{
	return wide ? 12 : 8;
}

START_TEST(two__each_operation_and_width__as_the_reference)
{
	uint32_t op = (uint32_t)_i / 2, count, i, n;
	bool wide = _i % 2;

	for (n = 0; n < 20000; n++) {
		count = n % 7;
		struct emu_operand a = make(op, wide, count), b = make(op, wide, count), r = a;

		UNIT_CHECK(emu_reduce(&r, &b));
		for (i = 0; i < count; i++) {
			union glex_coll_data_loc x, y, want;

			memcpy(&x, a.unit[i], sizeof(x));
			memcpy(&y, b.unit[i], sizeof(y));
			want = reference(op, wide, x, y);
			if (memcmp(&want, r.unit[i], meaning(wide)) != 0)
				ck_abort_msg("operation %u, width %d: %016llx@%u, %016llx@%u", op, wide,
					     (unsigned long long)x.uint64_s.data, x.uint64_s.location,
					     (unsigned long long)y.uint64_s.data, y.uint64_s.location);
		}
		for (; i < 6; i++)
			UNIT_CHECK(memcmp(r.unit[i], a.unit[i], 16) == 0);
	}
}
END_TEST

static void keep(struct emu_coll_kept *kept, uint64_t src, const struct emu_operand *o)
{
	kept->src = src;
	kept->len = emu_operand_len(o);
	memcpy(kept->data, o, kept->len);
}

static void shuffle(struct emu_coll_kept *kept, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = i + unit_random(&state) % (n - i);
		struct emu_coll_kept other = kept[i];

		kept[i] = kept[j];
		kept[j] = other;
	}
}

START_TEST(many__in_any_order__the_same_bits)
{
	static struct emu_coll_kept kept[EMU_OPERANDS];
	uint32_t op = (uint32_t)_i / 2, n = 1 + unit_random(&state) % EMU_OPERANDS, i, again;
	struct emu_operand own = make(op, _i % 2, 6), first = {0}, r;
	uint64_t src = UINT64_C(1) << 32 | 17;

	own.degree = 5;
	for (i = 0; i < n; i++) {
		r = make(op, _i % 2, 6);
		keep(&kept[i], (uint64_t)(i % 3) << 32 | i, &r);
	}
	for (again = 0; again < 50; again++) {
		ck_assert(emu_reduce_all(&r, &own, emu_operand_len(&own), src, kept, n));
		ck_assert_uint_eq(r.degree, 5);
		if (again == 0)
			first = r;
		ck_assert_int_eq(memcmp(&first, &r, sizeof(r)), 0);
		shuffle(kept, n);
	}
}
END_TEST

/* The sum of three where the order makes a difference: by address, the own one among them. */
START_TEST(float_sum__of_three__by_address)
{
	static const double value[3] = {1e16, 1.0, -1e16};
	struct emu_coll_kept kept[2];
	struct emu_operand o[3], r;
	uint32_t i;
	double got;

	for (i = 0; i < 3; i++) {
		o[i] = make(GLEX_COLL_REDUCE_SUM_FLOAT, true, 1);
		memcpy(o[i].unit[0], &value[i], sizeof(double));
	}
	keep(&kept[0], 30, &o[2]);
	keep(&kept[1], 10, &o[0]);
	ck_assert(emu_reduce_all(&r, &o[1], emu_operand_len(&o[1]), 20, kept, 2)); /* (1e16 + 1) - 1e16 */
	memcpy(&got, r.unit[0], sizeof(got));
	ck_assert(got == (value[0] + value[1]) + value[2]);
	ck_assert(emu_reduce_all(&r, &o[1], emu_operand_len(&o[1]), 40, kept, 2)); /* (1e16 - 1e16) + 1 */
	memcpy(&got, r.unit[0], sizeof(got));
	ck_assert(got == 1.0);
}
END_TEST

/* Whatever the senders' addresses, where a group says who comes first; the result has the place of its sender. */
START_TEST(float_sum__places_named__by_them_before_addresses)
{
	static const double value[3] = {1e16, -1e16, 1.0};
	struct emu_coll_kept kept[2];
	struct emu_operand o[3], r;
	uint64_t src[3] = {10, 20, 30};
	uint32_t i;
	double got;

	for (i = 0; i < 3; i++) {
		o[i] = make(GLEX_COLL_REDUCE_SUM_FLOAT, true, 1);
		o[i].order = i * 7;
		memcpy(o[i].unit[0], &value[i], sizeof(double));
	}
	for (i = 0; i < 6; i++) { /* (1e16 - 1e16) + 1, who and where ever is the inner node */
		uint32_t own = i % 3, a = (own + 1) % 3, b = (own + 2) % 3;

		src[0] = i < 3 ? 10 : 40;
		keep(&kept[0], src[b], &o[b]);
		keep(&kept[1], src[a], &o[a]);
		ck_assert(emu_reduce_all(&r, &o[own], emu_operand_len(&o[own]), src[own], kept, 2));
		memcpy(&got, r.unit[0], sizeof(got));
		ck_assert(got == 1.0);
		ck_assert_uint_eq(r.order, own * 7);
	}
}
END_TEST

START_TEST(misfits__of_any_kind__refused)
{
	struct emu_operand own = make(GLEX_COLL_REDUCE_BOR, true, 2), other = own, r;
	struct emu_coll_kept kept;

	keep(&kept, 1, &other);
	ck_assert(emu_reduce_all(&r, &own, emu_operand_len(&own), 2, &kept, 1));
	ck_assert(!emu_reduce_all(&r, &own, emu_operand_len(&own) - 1, 2, &kept, 1));
	kept.len--;
	ck_assert(!emu_reduce_all(&r, &own, emu_operand_len(&own), 2, &kept, 1));
	other.op = GLEX_COLL_REDUCE_BAND;
	keep(&kept, 1, &other);
	ck_assert(!emu_reduce_all(&r, &own, emu_operand_len(&own), 2, &kept, 1));
	other = own;
	other.bits = 0;
	keep(&kept, 1, &other);
	ck_assert(!emu_reduce_all(&r, &own, emu_operand_len(&own), 2, &kept, 1));
	other = own;
	other.magic++;
	ck_assert(!emu_is_operand(&other, emu_operand_len(&other)));
	other = own;
	other.op = OPS;
	ck_assert(!emu_is_operand(&other, emu_operand_len(&other)));
	other = own;
	other.count = 7;
	ck_assert(!emu_is_operand(&other, emu_operand_len(&other)));
	ck_assert(!emu_is_operand(&own, 15));
}
END_TEST

#if defined(__x86_64__)

#define ODD_FLOATS 0xe040u /* rounds towards 0, takes the smallest numbers for 0, traps at everything */

static struct emu_operand doubles(double a, double b, double c)
{
	struct emu_operand operand = {.magic = EMU_OPERAND_MAGIC, .count = 3, .bits = 1};
	const double value[] = {a, b, c};

	operand.op = GLEX_COLL_REDUCE_SUM_FLOAT;
	for (int i = 0; i < 3; i++) {
		union glex_coll_data_loc unit = {.double_s = {.data = value[i]}};

		memcpy(operand.unit[i], &unit, sizeof(unit));
	}
	return operand;
}

START_TEST(reduce__who_executes_rounds_and_traps_in_his_own_way__is_of_no_account)
{
	struct emu_operand usual = doubles(1, 3e-310, (double)INFINITY), odd = usual;
	struct emu_operand with = doubles(0x1.8p-53, 4e-310, (double)-INFINITY);
	uint32_t before = __builtin_ia32_stmxcsr(), after;

	ck_assert(emu_reduce(&usual, &with));
	ck_assert_uint_eq(__builtin_ia32_stmxcsr(), before);
	__builtin_ia32_ldmxcsr(ODD_FLOATS);
	emu_reduce(&odd, &with);
	after = __builtin_ia32_stmxcsr();
	__builtin_ia32_ldmxcsr(before);
	ck_assert_uint_eq(after, ODD_FLOATS);
	ck_assert_int_eq(memcmp(&usual, &odd, sizeof(odd)), 0);
}
END_TEST

#endif

int main(void)
{
	Suite *suite = suite_create("reduce");
	TCase *tc = tcase_create("reduce");

	tcase_add_loop_test(tc, two__each_operation_and_width__as_the_reference, 0, OPS * 2);
	tcase_add_loop_test(tc, many__in_any_order__the_same_bits, 0, OPS * 2);
	tcase_add_test(tc, float_sum__of_three__by_address);
	tcase_add_test(tc, float_sum__places_named__by_them_before_addresses);
	tcase_add_test(tc, misfits__of_any_kind__refused);
#if defined(__x86_64__)
	tcase_add_test(tc, reduce__who_executes_rounds_and_traps_in_his_own_way__is_of_no_account);
#endif
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
