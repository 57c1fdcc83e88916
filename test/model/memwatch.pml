/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memwatch.pml - the log of what happened to memory: append and glexi_memwatch_read
 * of libglex/src/core/memwatch.c, and rcache_absorb, which reads it.
 *
 * Writers claim a number each, and may be stopped anywhere for as long as others go
 * round the ring.  Each shared access of the C code is one step.  The range of a
 * change is one value here, in two words that can be torn; what change n was
 * of is kept beside it, to compare with.
 *
 *   LOG, WRITERS, EACH   slots; threads that change memory, and how often each
 *
 * Checked: a range that is read is that of its number, whole; whoever has absorbed
 * the log up to a length knows of each change before it, or takes everything for
 * changed; nobody waits for a writer that was stopped.
 *
 * Mutations, each of which must be found:
 *   MUT_SEQ_FIRST   the slot is published before it is filled
 *   MUT_NO_CLAIM    it is filled without being claimed: two may at once
 *   MUT_ONE_LOOK    the reader does not look at the number again
 *   MUT_SKIP        what cannot be read is passed over
 */
#ifndef LOG
#define LOG 2
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef EACH
#define EACH 2
#endif
#define CHANGES (WRITERS * EACH)
#define BUSY	255

byte length;
byte seq[LOG], start[LOG], end_[LOG]; /* seq: number + 1 */
byte truth[CHANGES];		      /* not of the code: what change n was of */

active [WRITERS] proctype writer()
{
	byte i, n, old, at;

	do
	:: i < EACH ->
		atomic { n = length; truth[n] = 10 * (_pid + 1) + i; length++ } /* MEMW-R2 */
		at = n % LOG;
		old = seq[at];
		if
		:: old != BUSY && old > n -> skip /* also BUSY, which is the greatest */
		:: old == BUSY -> skip
		:: else ->
#ifndef MUT_NO_CLAIM
			atomic {
				if
				:: seq[at] == old -> seq[at] = BUSY
				:: else -> goto done /* who wins writes */
				fi
			}
#endif
#ifdef MUT_SEQ_FIRST
			seq[at] = n + 1;
#endif
			start[at] = truth[n];
			end_[at] = truth[n];
			seq[at] = n + 1; /* MEMW-R3 */
		fi;
done:		i++
	:: else -> break
	od
}

active proctype reader()
{
	byte seen, now, from, to, first, second;
	bool all, unread;

	do
	:: seen == CHANGES -> break
	:: else ->
		now = length; /* MEMW-A2 */
		all = now - seen > LOG;
		do
		:: !all && seen != now ->
			first = seq[seen % LOG]; /* MEMW-A3 */
			from = start[seen % LOG];
			to = end_[seen % LOG];
			second = seq[seen % LOG]; /* MEMW-A3 */
#ifdef MUT_ONE_LOOK
			second = first;
#endif
			if
			:: first == seen + 1 && second == seen + 1 ->
				assert(from == truth[seen] && to == truth[seen]);
				seen++
			:: else ->
#ifdef MUT_SKIP
				seen++;
				unread = true
#else
				all = true
#endif
			fi
		:: else -> break
		od;
		unread = unread || seen != now;
		assert(all || !unread); /* else it has never heard of a change */
		unread = false;
		seen = now
	od
}
