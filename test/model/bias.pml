/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bias.pml - a ring that one sender has to itself: emulator/nic/bias.h and bias.c.
 *
 * The owner's store of lead lies in its store buffer (`buffered`) until memory
 * pleases, also after its next load of tail; a locked instruction of its own, the
 * other's membarrier and its own end empty the buffer.  Every other access is one
 * step, in the order of the code.  Room and the claims of a shared ring are
 * ring.pml's business: here the ring is endless, and such a claim is one step.
 *
 *   OWNER, EACH   messages of the owner, of each of two others
 *   KILL          1: the owner may be killed at any time | 2: one of the others
 *
 * Checked: no slot is claimed twice; none below the tail is anybody's, or the
 * consumer would wait for it for ever; of a dead owner what it claimed and left is
 * found, and nothing else.
 *
 * Mutations, each of which must be found:
 *   MUT_NO_BARRIER    who takes the ring away does not make the owner order its memory
 *   MUT_LEAD_EARLY    it looks at lead before that
 *   MUT_LOOK_FIRST    the owner looks at tail before it stores lead
 *   MUT_LOOK_ONCE     it does not look at tail after it
 *   MUT_NOT_COUNTED   an owner that sees its ring gone takes its claim for void
 *   MUT_COUNTED       it takes it for good
 *   MUT_PLAIN_SETTLE  settled is looked at and then written
 *   MUT_NO_RECLAIM    nobody takes the ring of a dead owner away
 */
#ifndef OWNER
#define OWNER 2
#endif
#ifndef EACH
#define EACH 1
#endif
#ifndef KILL
#define KILL 1
#endif
#define SLOTS (OWNER + 2 * EACH + 2)

mtype = { FRESH, BIASED, REVOKED, SHARED };

/* shared memory */
mtype tail = FRESH;
byte next; /* tail's index, where it is SHARED */
byte lead, settled;
bool published[SLOTS];

byte buffered; /* what the owner has stored into lead and others do not see; 0: nothing */
bool killed, owner_gone;

/* what only the checks look at */
byte ended, discarded;

inline drain()
{
	atomic {
		if
		:: buffered > 0 -> lead = buffered; buffered = 0
		:: else -> skip
		fi
	}
}

active proctype memory()
{
end:
	do
	:: atomic { buffered > 0 -> lead = buffered; buffered = 0 }
	od
}

/* c: how many claims of the owner count, as far as the caller knows; and then as it is. */
inline settle()
{
#ifdef MUT_PLAIN_SETTLE
	if
	:: settled == 0 -> settled = c + 1
	:: else -> skip
	fi;
	c = settled - 1;
#else
	atomic {
		if
		:: settled == 0 -> settled = c + 1
		:: else -> skip
		fi;
		c = settled - 1
	};
#endif
	atomic {
		if
		:: tail == REVOKED ->
			tail = SHARED;
			next = c
		:: else -> skip
		fi
	}
}

inline take_away(barrier)
{
	atomic {
		if
		:: tail == BIASED -> tail = REVOKED
		:: else -> skip
		fi
	};
#ifdef MUT_LEAD_EARLY
	c = lead;
#endif
#ifndef MUT_NO_BARRIER
	if
	:: barrier -> drain()
	:: else -> skip
	fi;
#endif
#ifndef MUT_LEAD_EARLY
	c = lead;
#endif
	settle();
	c = 0
}

inline publish(n)
{
	atomic {
		assert(!published[n]);
		published[n] = true
	}
}

/* A claim of a ring that is shared; index is SLOTS if it was not. */
inline claim_shared()
{
	atomic {
		index = SLOTS;
		if
		:: tail == FRESH -> tail = SHARED
		:: else -> skip
		fi;
		if
		:: tail == SHARED ->
			index = next;
			next++
		:: else -> skip
		fi
	}
}

proctype owner()
{
	byte n, mine, index, c;
	mtype seen;

	{
		do
		:: n == OWNER -> break
		:: n < OWNER ->
			index = SLOTS;
			atomic {
				if
				:: tail == FRESH -> tail = BIASED
				:: else -> skip
				fi;
				seen = tail
			};
			if
			:: seen == BIASED ->
#ifdef MUT_LOOK_FIRST
				seen = tail;
#endif
				atomic {
					mine = (buffered > 0 -> buffered : lead) + 1;
					buffered = mine
				};
#if !defined(MUT_LOOK_FIRST) && !defined(MUT_LOOK_ONCE)
				seen = tail;
#endif
				if
				:: seen == BIASED -> index = mine - 1
				:: else ->
#ifdef MUT_COUNTED
					index = mine - 1
#elif defined(MUT_NOT_COUNTED)
					drain();
					c = mine - 1;
					settle()
#else
					atomic { c = mine; seen = tail };
					if
					:: seen == REVOKED ->
						drain(); /* by the compare-and-swap */
						settle()
					:: else -> c = settled - 1
					fi;
					if
					:: c == mine -> index = mine - 1
					:: else -> skip
					fi
#endif
				fi
			:: seen == REVOKED -> take_away(true)
			:: else -> skip
			fi;
			if
			:: index == SLOTS ->
				if
				:: atomic { tail == SHARED -> claim_shared(); publish(index); n++ }
				:: else -> skip
				fi
			:: else ->
				publish(index);
				n++
			fi;
			atomic { mine = 0; c = 0 }
		od
	} unless { killed };
	atomic {
		if
		:: buffered > 0 -> lead = buffered; buffered = 0
		:: else -> skip
		fi;
		owner_gone = true;
		ended++
	}
}

proctype other(bool mortal)
{
	byte n, index, c;

	do
	:: n == EACH -> break
	:: n < EACH ->
		if
		:: tail == BIASED || tail == REVOKED ->
			take_away(true);
			/* killed somewhere in there: as if it had never gone on */
			if
			:: mortal -> break
			:: true
			fi
		:: else ->
			/* Publishing with the claim: who dies in between is ring.pml's business. */
			atomic {
				claim_shared();
				if
				:: index < SLOTS -> publish(index); n++
				:: else -> skip
				fi
			}
		fi
	od;
	ended++
}

/* One that dies right after it has begun to take the ring away. */
proctype beginner()
{
	atomic {
		if
		:: tail == BIASED && KILL == 2 -> tail = REVOKED
		:: else -> skip
		fi
	};
	ended++
}

proctype killer()
{
	if
	:: KILL == 1 -> killed = true
	:: skip
	fi
}

/* glexd, when the owner is gone: what it left is discarded.  In the end every slot below the tail has been somebody's. */
proctype reaper()
{
	byte c, n;

	owner_gone;
#ifndef MUT_NO_RECLAIM
	if
	:: tail == BIASED || tail == REVOKED -> take_away(false)
	:: else -> skip
	fi;
#endif
	atomic {
		if
		:: tail == SHARED && settled > 0 -> c = settled - 1
		:: else -> c = 0
		fi;
		do
		:: n < c ->
			if
			:: !published[n] ->
				assert(killed);
				published[n] = true;
				discarded++
			:: else -> skip
			fi;
			n++
		:: else -> break
		od;
		n = 0;
		c = 0;
		assert(discarded <= 1)
	};
	ended == 4;
	atomic {
		do
		:: n < SLOTS ->
			assert(published[n] == (tail == SHARED && n < next) || (tail == BIASED && published[n] == (n < lead)));
			n++
		:: else -> break
		od
	}
}

init
{
	atomic {
		run owner();
		run other(false);
		run other(KILL == 2);
		run beginner();
		run killer();
		run reaper()
	}
}
