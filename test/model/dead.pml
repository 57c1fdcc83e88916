/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dead.pml - the list of who has died: emu_dead_note against emu_dead_read of
 * emulator/nic/dead.h, with a reader that may be any number of deaths behind.
 *
 * glexd alone writes; each shared access of the C code is one step.  In the place
 * of an address stands the number it was noted under, so that a reader can tell.
 *
 *   KEPT, DEATHS   entries of the list; how many die
 *
 * Checked: an entry that is read is that of its number, numbers grow, who is less
 * than KEPT - 1 behind at each look misses none, and all come to the end.
 *
 * Mutations, each of which must be found:
 *   MUT_COUNT_FIRST    a death is counted before it is written
 *   MUT_NO_RECHECK     the entry is not looked at again after it was read
 *   MUT_RECHECK_FIRST  the second look comes before the entry is read
 *   MUT_ALL_KEPT       an entry KEPT behind counts as readable: it may be just being written
 */
#ifndef KEPT
#define KEPT 3
#endif
#ifndef DEATHS
#define DEATHS 7
#endif
#ifdef MUT_ALL_KEPT
#define READABLE(behind) ((behind) <= KEPT)
#else
#define READABLE(behind) ((behind) < KEPT)
#endif
#define NEVER 255

byte deaths;
byte dead[KEPT] = NEVER;

active proctype glexd()
{
	byte n;

	do
	:: n < DEATHS ->
#ifdef MUT_COUNT_FIRST
		deaths = n + 1;
		dead[n % KEPT] = n;
#else
		dead[n % KEPT] = n; /* DEAD-R2 */
		deaths = n + 1;	    /* DEAD-R1 */
#endif
		n++
	:: else -> break
	od
}

active [2] proctype reader()
{
	byte next, n, count, again, addr;
	bool behind; /* too far at some look: it may have missed some */

	do
	:: next == DEATHS -> break
	:: else ->
		n = next;
		count = deaths; /* DEAD-A1 */
		if
		:: n >= count -> skip /* none yet: it looks again */
		:: else ->
			if
			:: READABLE(count - n) ->
#ifdef MUT_RECHECK_FIRST
				again = deaths;
				addr = dead[n % KEPT];
#else
				addr = dead[n % KEPT]; /* DEAD-A2 */
				again = deaths;	       /* DEAD-A1 */
#endif
#ifdef MUT_NO_RECHECK
				again = count;
#endif
				if
				:: READABLE(again - n) ->
					assert(addr == n);
					assert(behind || n == next);
					next = n + 1
				:: else -> behind = true; next = deaths - KEPT + 1
				fi
			:: else -> behind = true; next = deaths - KEPT + 1
			fi
		fi
	od
}
