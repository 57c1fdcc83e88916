/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ring.c - the queue of emulator/nic/ring.h: order, bounds, wrap, and who
 * owned a slot that nobody published.
 *
 * What a dead session leaves is checked twice: every interleaving of a few
 * operations against a model that keeps plain lists, and many threads that
 * claim at once and note down what they got.
 */
#include "unit.h"

#include <pthread.h>

#define SHIFT	 4 /* struct slot */
#define FLAGS_AT offsetof(struct slot, flags)
#define NEAR_END 0xfffffffdu

struct slot {
	_Atomic uint32_t seq;
	uint16_t flags;
	uint16_t reserved;
	uint64_t tag;
};

static struct emu_ring ring;

static void new_ring(uint32_t capacity, uint32_t first)
{
	unit_ring_init(&ring, unit_zeroed(unit_ring_size(capacity, SHIFT)), capacity, SHIFT, first);
}

static void teardown(void)
{
	free(ring.ctl);
	ring.ctl = NULL;
}

static void put(uint32_t session, uint64_t tag)
{
	uint32_t index = 0;
	struct slot *slot = emu_ring_claim(&ring, session, &index);

	ck_assert_ptr_nonnull(slot);
	slot->flags = 0;
	slot->tag = tag;
	emu_ring_publish(slot, index);
}

static uint32_t claim(uint32_t session)
{
	uint32_t index = 0;

	ck_assert_ptr_nonnull(emu_ring_claim(&ring, session, &index));
	return index;
}

static bool is_full(uint32_t session)
{
	uint32_t index = 0;

	return emu_ring_claim(&ring, session, &index) == NULL;
}

static bool is_discarded(uint32_t index)
{
	struct slot *slot = emu_ring_peek(&ring, index);

	return slot && (slot->flags & EMU_SLOT_DISCARDED);
}

/* ---- claim, publish, peek, release --------------------------------------- */

/* The index a test begins with: at the start, in the middle, and so that it runs over 2^32. */
static const uint32_t firsts[] = {0, 1000, NEAR_END, 0x7ffffffeu};

#define FIRSTS 4

START_TEST(peek__nothing_claimed__is_null)
{
	new_ring(8, firsts[_i]);
	ck_assert_ptr_null(emu_ring_peek(&ring, firsts[_i]));
}
END_TEST

START_TEST(peek__claimed_only__is_null)
{
	new_ring(8, firsts[_i]);
	ck_assert_uint_eq(claim(7), firsts[_i]);
	ck_assert_ptr_null(emu_ring_peek(&ring, firsts[_i]));
}
END_TEST

START_TEST(peek__published__shows_the_slot)
{
	struct slot *slot;

	new_ring(8, firsts[_i]);
	put(7, 77);
	slot = emu_ring_peek(&ring, firsts[_i]);
	ck_assert_ptr_nonnull(slot);
	ck_assert_uint_eq(slot->tag, 77);
	ck_assert_ptr_null(emu_ring_peek(&ring, firsts[_i] + 1));
}
END_TEST

START_TEST(peek__second_published_before_first__first_is_null)
{
	uint32_t first = firsts[_i], second;

	new_ring(8, first);
	claim(7);
	second = claim(7);
	emu_ring_publish(emu_ring_slot(&ring, second), second);
	ck_assert_ptr_null(emu_ring_peek(&ring, first));
	ck_assert_ptr_nonnull(emu_ring_peek(&ring, second));
}
END_TEST

START_TEST(claim__capacity_taken__is_full)
{
	new_ring(8, firsts[_i]);
	for (uint64_t n = 0; n < 8; n++)
		put(7, n);
	ck_assert(is_full(7));
	ck_assert(is_full(8));
}
END_TEST

START_TEST(claim__full_then_one_released__has_room_for_one)
{
	new_ring(8, firsts[_i]);
	for (uint64_t n = 0; n < 8; n++)
		put(7, n);
	emu_ring_release(&ring, firsts[_i] + 1);
	put(7, 8);
	ck_assert(is_full(7));
}
END_TEST

START_TEST(claim__consumed_but_not_released__stays_full)
{
	new_ring(2, firsts[_i]);
	put(7, 0);
	put(7, 1);
	ck_assert_ptr_nonnull(emu_ring_peek(&ring, firsts[_i]));
	ck_assert(is_full(7));
}
END_TEST

START_TEST(ring__many_laps__keeps_order)
{
	static const uint32_t capacities[] = {1, 2, 4, 64};

	for (size_t c = 0; c < 4; c++) {
		uint32_t capacity = capacities[c], head = firsts[_i];
		uint64_t sent = 0, got = 0;

		new_ring(capacity, firsts[_i]);
		for (uint32_t lap = 0; lap < 20; lap++) {
			while (sent - got < capacity) {
				put(5 + (uint32_t)(sent / 3 % 3), sent);
				sent++;
			}
			ck_assert(is_full(9));
			for (uint32_t n = 0; n < 1 + lap % capacity; n++) {
				struct slot *slot = emu_ring_peek(&ring, head);

				ck_assert_ptr_nonnull(slot);
				ck_assert_uint_eq(slot->tag, got++);
				emu_ring_release(&ring, ++head);
			}
		}
		teardown();
	}
}
END_TEST

START_TEST(slot__index_over_the_wrap__is_masked)
{
	new_ring(8, 0);
	ck_assert_ptr_eq(emu_ring_slot(&ring, 0xffffffffu), emu_ring_slot(&ring, 7));
	ck_assert_ptr_eq(emu_ring_slot(&ring, 8), emu_ring_slot(&ring, 0));
}
END_TEST

/* ---- what the log says --------------------------------------------------- */

START_TEST(claim__one_session__writes_no_log)
{
	new_ring(8, 0);
	for (uint64_t n = 0; n < 8; n++)
		put(7, n);
	for (uint32_t n = 0; n < 8; n++)
		ck_assert_uint_eq(atomic_load(&ring.log[n]), 0);
}
END_TEST

START_TEST(claim__behind_another_session__logs_its_last_index)
{
	new_ring(8, NEAR_END);
	claim(7);
	claim(7);
	claim(8);
	ck_assert_uint_eq(atomic_load(&ring.log[NEAR_END & 7]), 0);
	ck_assert_uint_eq(atomic_load(&ring.log[(NEAR_END + 1) & 7]), emu_pair(NEAR_END + 1, 7));
	ck_assert_uint_eq(atomic_load(&ring.ctl->tail), emu_pair(8, NEAR_END + 3));
}
END_TEST

START_TEST(claim__full_behind_another_session__leaves_the_log_alone)
{
	new_ring(2, 0);
	put(7, 0);
	put(7, 1);
	ck_assert(is_full(8));
	ck_assert_uint_eq(atomic_load(&ring.log[1]), 0);
}
END_TEST

/* One session alone writes no log, so an entry can be as old as it likes: also more than half the circle. */
START_TEST(claim__log_entry_of_two_billion_claims_ago__is_replaced)
{
	static const uint32_t ages[] = {8, 0x7fffffe8u, 0x80000008u, 0xfffffff8u};
	const uint32_t first = 0x90000000u, last = first - 1;

	new_ring(8, first);
	atomic_store(&ring.ctl->tail, emu_pair(7, first));
	atomic_store(&ring.log[last & 7], emu_pair(last - ages[_i], 6));
	ck_assert_uint_eq(claim(8), first);
	ck_assert_uint_eq(atomic_load(&ring.log[last & 7]), emu_pair(last, 7));
}
END_TEST

/* A thread that slept between reading head and storing it hands on something of long ago. */
START_TEST(claim__head_seen_of_two_billion_claims_ago__is_full_all_the_same)
{
	new_ring(4, 0x90000000u);
	for (uint64_t n = 0; n < 4; n++)
		put(7, n);
	atomic_store(&ring.ctl->head_seen, 5);
	ck_assert(is_full(7));
	ck_assert(is_full(8));
	ck_assert_uint_eq(atomic_load(&ring.ctl->head_seen), 0x90000000u);
}
END_TEST

/* ---- reap ---------------------------------------------------------------- */

START_TEST(reap__nothing_left__is_zero)
{
	new_ring(8, firsts[_i]);
	ck_assert_uint_eq(emu_ring_reap(&ring, 7, FLAGS_AT), 0);
	put(7, 1);
	put(8, 2);
	ck_assert_uint_eq(emu_ring_reap(&ring, 7, FLAGS_AT), 0);
	ck_assert(!is_discarded(firsts[_i]));
}
END_TEST

START_TEST(reap__one_slot_left__is_discarded)
{
	uint32_t index;

	new_ring(8, firsts[_i]);
	index = claim(7);
	ck_assert_uint_eq(emu_ring_reap(&ring, 7, FLAGS_AT), 1);
	ck_assert(is_discarded(index));
	ck_assert_uint_eq(emu_ring_reap(&ring, 7, FLAGS_AT), 0);
}
END_TEST

START_TEST(reap__slots_of_the_living__stay)
{
	uint32_t theirs, its;

	new_ring(8, firsts[_i]);
	theirs = claim(8);
	its = claim(7);
	claim(8);
	ck_assert_uint_eq(emu_ring_reap(&ring, 7, FLAGS_AT), 1);
	ck_assert(is_discarded(its));
	ck_assert_ptr_null(emu_ring_peek(&ring, theirs));
	ck_assert_ptr_null(emu_ring_peek(&ring, theirs + 2));
}
END_TEST

START_TEST(reap__after_laps__takes_only_what_is_left)
{
	uint32_t head = firsts[_i], its;

	new_ring(4, head);
	for (uint64_t n = 0; n < 23; n++) {
		put(n % 2 ? 7 : 8, n);
		emu_ring_release(&ring, ++head);
	}
	put(8, 23);
	its = claim(7);
	put(8, 25);
	ck_assert_uint_eq(emu_ring_reap(&ring, 7, FLAGS_AT), 1);
	ck_assert(!is_discarded(its - 1));
	ck_assert(is_discarded(its));
	ck_assert(!is_discarded(its + 1));
}
END_TEST

START_TEST(reap__full_of_one_dead_session__all_discarded)
{
	new_ring(64, firsts[_i]);
	for (uint32_t n = 0; n < 64; n++)
		claim(7);
	ck_assert_uint_eq(emu_ring_reap(&ring, 7, FLAGS_AT), 64);
	for (uint32_t n = 0; n < 64; n++)
		ck_assert(is_discarded(firsts[_i] + n));
	emu_ring_release(&ring, firsts[_i] + 64);
	put(8, 1);
}
END_TEST

START_TEST(reap__capacity_one__is_discarded_and_goes_on)
{
	uint32_t first = firsts[_i];

	new_ring(1, first);
	put(7, 1);
	emu_ring_release(&ring, first + 1);
	ck_assert_uint_eq(claim(8), first + 1);
	ck_assert_uint_eq(emu_ring_reap(&ring, 7, FLAGS_AT), 0);
	ck_assert_uint_eq(emu_ring_reap(&ring, 8, FLAGS_AT), 1);
	ck_assert(is_discarded(first + 1));
	ck_assert(is_full(7));
	emu_ring_release(&ring, first + 2);
	put(7, 3);
	ck_assert(!is_discarded(first + 2));
}
END_TEST

/* ---- every interleaving, against a model --------------------------------- */

#define MODEL_CAPACITY 4
#define MODEL_CLAIMS   6
#define SESSION_OF(s)  ((uint32_t)(s) + 20)

enum status { UNPUBLISHED, PUBLISHED, DISCARDED };

/* A state of the ring, memory and all, and what should be in it. */
struct state {
	_Alignas(EMU_LINE) unsigned char memory[sizeof(struct emu_ring_ctl) + MODEL_CAPACITY * (8 + (1 << SHIFT))];
	uint8_t owner[MODEL_CLAIMS];
	uint8_t status[MODEL_CLAIMS];
	uint8_t claimed, consumed;
	uint8_t dead, reaped; /* bit s: session s */
};

struct search {
	uint32_t first, capacity;
	uint8_t sessions, claims;
	uint64_t *seen; /* hashes of states, open addressing; 0: free */
	size_t room, states;
};

static uint64_t hash_of(const struct state *state)
{
	const unsigned char *p = (const unsigned char *)state;
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < sizeof(*state); i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, p + i, sizeof(word));
		h = (h ^ word) * 1099511628211u;
		h ^= h >> 29;
	}
	return h | 1;
}

/* True the first time a state is met. */
static bool is_new(struct search *search, const struct state *state)
{
	uint64_t hash = hash_of(state);
	size_t at = hash & (search->room - 1);

	while (search->seen[at]) {
		if (search->seen[at] == hash)
			return false;
		at = (at + 1) & (search->room - 1);
	}
	search->seen[at] = hash;
	UNIT_CHECK(++search->states < search->room / 2);
	return true;
}

static void view(const struct search *search, struct state *state)
{
	ring.ctl = (void *)state->memory;
	ring.slots = state->memory + sizeof(struct emu_ring_ctl);
	ring.log = (void *)(ring.slots + ((size_t)search->capacity << SHIFT));
	ring.mask = search->capacity - 1;
	ring.shift = SHIFT;
}

static void agree(const struct search *search, struct state *state)
{
	for (uint8_t n = state->consumed; n < state->claimed; n++) {
		struct slot *slot = emu_ring_peek(&ring, search->first + n);

		UNIT_CHECK((slot != NULL) == (state->status[n] != UNPUBLISHED));
		if (slot)
			UNIT_CHECK((slot->flags == EMU_SLOT_DISCARDED) == (state->status[n] == DISCARDED));
		if (slot && state->status[n] == PUBLISHED)
			UNIT_CHECK(slot->tag == n);
	}
	UNIT_CHECK(!emu_ring_peek(&ring, search->first + state->claimed));
}

static void explore(struct search *search, const struct state *from);

static void try_claim(struct search *search, const struct state *from, uint8_t s)
{
	struct state next = *from;
	uint32_t index = 0;
	void *slot;

	view(search, &next);
	slot = emu_ring_claim(&ring, SESSION_OF(s), &index);
	if (next.claimed - next.consumed == (int)search->capacity) {
		UNIT_CHECK(!slot);
		return;
	}
	UNIT_CHECK(slot);
	UNIT_CHECK(index == search->first + next.claimed);
	next.owner[next.claimed] = s;
	next.status[next.claimed++] = UNPUBLISHED;
	explore(search, &next);
}

static void try_publish(struct search *search, const struct state *from, uint8_t n)
{
	struct state next = *from;
	struct slot *slot;

	view(search, &next);
	slot = emu_ring_slot(&ring, search->first + n);
	slot->flags = 0;
	slot->tag = n;
	emu_ring_publish(slot, search->first + n);
	next.status[n] = PUBLISHED;
	explore(search, &next);
}

static void do_reap(struct state *state, uint8_t s)
{
	uint32_t expected = 0;

	for (uint8_t n = 0; n < state->claimed; n++) {
		if (state->owner[n] == s && state->status[n] == UNPUBLISHED) {
			state->status[n] = DISCARDED;
			expected++;
		}
	}
	UNIT_CHECK(emu_ring_reap(&ring, SESSION_OF(s), FLAGS_AT) == expected);
	state->dead |= (uint8_t)(1u << s);
	state->reaped |= (uint8_t)(1u << s);
}

/* Whatever the state: once all are dead and reaped, the consumer gets to the end. */
static void finish(const struct search *search, const struct state *from)
{
	struct state last = *from;

	view(search, &last);
	for (uint8_t s = 0; s < search->sessions; s++)
		do_reap(&last, s);
	agree(search, &last);
	for (uint8_t n = last.consumed; n < last.claimed; n++)
		UNIT_CHECK(emu_ring_peek(&ring, search->first + n));
}

/* Those that have claimed something: they come in the order of their numbers. */
static uint8_t sessions_of(const struct state *state)
{
	uint8_t sessions = 0;

	for (uint8_t n = 0; n < state->claimed; n++)
		if (state->owner[n] >= sessions)
			sessions = (uint8_t)(state->owner[n] + 1);
	return sessions;
}

static void explore_session(struct search *search, const struct state *from, uint8_t s)
{
	struct state next = *from;
	uint8_t bit = (uint8_t)(1u << s);

	if (s >= sessions_of(from)) {
		/* None of them has done anything yet, so one stands for all. */
		if (s == sessions_of(from) && from->claimed < search->claims)
			try_claim(search, from, s);
	} else if (!(from->dead & bit)) {
		if (from->claimed < search->claims)
			try_claim(search, from, s);
		for (uint8_t n = from->consumed; n < from->claimed; n++)
			if (from->owner[n] == s && from->status[n] == UNPUBLISHED)
				try_publish(search, from, n);
		next.dead |= bit;
		explore(search, &next);
	} else if (!(from->reaped & bit)) {
		view(search, &next);
		do_reap(&next, s);
		explore(search, &next);
	}
}

static void explore(struct search *search, const struct state *from)
{
	struct state here = *from;

	if (!is_new(search, from))
		return;
	view(search, &here);
	agree(search, &here);
	finish(search, from);
	for (uint8_t s = 0; s < search->sessions; s++)
		explore_session(search, from, s);
	if (from->consumed < from->claimed && from->status[from->consumed] != UNPUBLISHED) {
		here = *from;
		view(search, &here);
		here.consumed++;
		emu_ring_release(&ring, search->first + here.consumed);
		explore(search, &here);
	}
}

static size_t search_all(uint32_t first, uint32_t capacity, uint8_t sessions, uint8_t claims)
{
	struct search search = {.first = first, .capacity = capacity, .sessions = sessions, .claims = claims};
	struct state start;
	struct emu_ring fresh;

	search.room = (size_t)1 << 22;
	search.seen = calloc(search.room, sizeof(*search.seen));
	ck_assert_ptr_nonnull(search.seen);
	memset(&start, 0, sizeof(start));
	unit_ring_init(&fresh, start.memory, capacity, SHIFT, first);
	explore(&search, &start);
	free(search.seen);
	ring.ctl = NULL;
	return search.states;
}

static const struct {
	uint32_t first, capacity;
	uint8_t sessions, claims;
} searches[] = {
	{0, 4, 2, 6}, {NEAR_END, 4, 2, 6}, {NEAR_END, 2, 2, 6}, {0, 1, 2, 5}, {NEAR_END, 2, 3, 6}, {0, 4, 3, 6},
};

#define SEARCHES 6

START_TEST(reap__every_interleaving__discards_what_the_dead_left_and_nothing_else)
{
	size_t states =
		search_all(searches[_i].first, searches[_i].capacity, searches[_i].sessions, searches[_i].claims);

	ck_assert_uint_gt(states, 100);
}
END_TEST

/* ---- threads ------------------------------------------------------------- */

#define CLAIMERS  4
#define ROUNDS	  1500
#define CONTENDED 64

struct claimer {
	uint32_t session;
	uint32_t index[CONTENDED];
	uint32_t count;
};

static struct claimer claimers[CLAIMERS];
static pthread_barrier_t gate;

static void *claim_all(void *arg)
{
	struct claimer *claimer = arg;

	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&gate);
		claimer->count = 0;
		while (emu_ring_claim(&ring, claimer->session, &claimer->index[claimer->count]))
			if (++claimer->count % 3 == 0)
				sched_yield();
		pthread_barrier_wait(&gate);
		pthread_barrier_wait(&gate); /* while the main thread looks */
	}
	return NULL;
}

static void check_round(uint32_t head)
{
	uint32_t total = 0;

	for (int c = 0; c < CLAIMERS; c++) {
		struct claimer *claimer = &claimers[(c + head / CONTENDED) % CLAIMERS];

		UNIT_CHECK(emu_ring_reap(&ring, claimer->session, FLAGS_AT) == claimer->count);
		for (uint32_t n = 0; n < claimer->count; n++)
			UNIT_CHECK(is_discarded(claimer->index[n]));
		total += claimer->count;
	}
	UNIT_CHECK(total == CONTENDED);
	emu_ring_release(&ring, head + CONTENDED);
}

START_TEST(reap__claims_raced_by_threads__each_slot_has_its_owner)
{
	pthread_t threads[CLAIMERS];
	uint32_t head = NEAR_END - ROUNDS / 2 * CONTENDED;

	new_ring(CONTENDED, head);
	pthread_barrier_init(&gate, NULL, CLAIMERS + 1);
	for (uint32_t c = 0; c < CLAIMERS; c++) {
		claimers[c].session = SESSION_OF(c);
		ck_assert_int_eq(pthread_create(&threads[c], NULL, claim_all, &claimers[c]), 0);
	}
	for (int round = 0; round < ROUNDS; round++, head += CONTENDED) {
		pthread_barrier_wait(&gate);
		pthread_barrier_wait(&gate);
		check_round(head);
		pthread_barrier_wait(&gate);
	}
	for (int c = 0; c < CLAIMERS; c++)
		pthread_join(threads[c], NULL);
}
END_TEST

static Suite *ring_suite(void)
{
	Suite *suite = suite_create("ring");
	TCase *order = tcase_create("order"), *log = tcase_create("log");
	TCase *reap = tcase_create("reap"), *race = tcase_create("race");

	tcase_add_checked_fixture(order, NULL, teardown);
	tcase_add_loop_test(order, peek__nothing_claimed__is_null, 0, FIRSTS);
	tcase_add_loop_test(order, peek__claimed_only__is_null, 0, FIRSTS);
	tcase_add_loop_test(order, peek__published__shows_the_slot, 0, FIRSTS);
	tcase_add_loop_test(order, peek__second_published_before_first__first_is_null, 0, FIRSTS);
	tcase_add_loop_test(order, claim__capacity_taken__is_full, 0, FIRSTS);
	tcase_add_loop_test(order, claim__full_then_one_released__has_room_for_one, 0, FIRSTS);
	tcase_add_loop_test(order, claim__consumed_but_not_released__stays_full, 0, FIRSTS);
	tcase_add_loop_test(order, ring__many_laps__keeps_order, 0, FIRSTS);
	tcase_add_test(order, slot__index_over_the_wrap__is_masked);
	tcase_add_checked_fixture(log, NULL, teardown);
	tcase_add_test(log, claim__one_session__writes_no_log);
	tcase_add_test(log, claim__behind_another_session__logs_its_last_index);
	tcase_add_test(log, claim__full_behind_another_session__leaves_the_log_alone);
	tcase_add_loop_test(log, claim__log_entry_of_two_billion_claims_ago__is_replaced, 0, 4);
	tcase_add_test(log, claim__head_seen_of_two_billion_claims_ago__is_full_all_the_same);
	tcase_add_checked_fixture(reap, NULL, teardown);
	tcase_add_loop_test(reap, reap__nothing_left__is_zero, 0, FIRSTS);
	tcase_add_loop_test(reap, reap__one_slot_left__is_discarded, 0, FIRSTS);
	tcase_add_loop_test(reap, reap__slots_of_the_living__stay, 0, FIRSTS);
	tcase_add_loop_test(reap, reap__after_laps__takes_only_what_is_left, 0, FIRSTS);
	tcase_add_loop_test(reap, reap__full_of_one_dead_session__all_discarded, 0, FIRSTS);
	tcase_add_loop_test(reap, reap__capacity_one__is_discarded_and_goes_on, 0, FIRSTS);
	tcase_set_timeout(race, 300); /* with a sanitizer, on a busy machine */
	tcase_add_checked_fixture(race, NULL, teardown);
	tcase_add_loop_test(race, reap__every_interleaving__discards_what_the_dead_left_and_nothing_else, 0, SEARCHES);
	tcase_add_test(race, reap__claims_raced_by_threads__each_slot_has_its_owner);
	suite_add_tcase(suite, order);
	suite_add_tcase(suite, log);
	suite_add_tcase(suite, reap);
	suite_add_tcase(suite, race);
	return suite;
}

int main(void)
{
	return suite_run(ring_suite());
}
