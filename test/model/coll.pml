/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.pml - who executes the collective requests of a port: emu_coll_turn,
 * emu_coll_send and emu_coll_inherit (emulator/nic/coll.h), and someone who is
 * killed at any instruction.
 *
 * SENDERS processes bring a control packet each into D; each opens a gate of one
 * packet, whose request sends a packet to another port (out).  Whoever has the
 * turn executes.  Each shared access of the C code is one step; filling a slot,
 * and changing the state, which become visible by one store, are one.
 *
 *   SENDERS, KILL   how many; 1: sender 0 may be killed
 *
 * Checked: each packet that was published in D leads to one in out, in their
 * order, and no more do; in the end nobody has the turn and nothing is left to
 * do; no deadlock.
 * Not covered: many gates, chains from port to port (each is this again), the
 * copying of the state, weaker memory orders.
 *
 * Mutations, each of which must be found:
 *   MUT_NO_RECHECK    the turn is given back without a look at who has asked
 *   MUT_ASK_FIRST     a sender asks before it publishes
 *   MUT_FILL_LATE     the intent is written after the packet is published
 *   MUT_COMMIT_FIRST  the state goes on before the packet is published
 *   MUT_REAP_FIRST    glexd discards slots before it ends what was begun
 *   MUT_NO_INHERIT    it does not end it at all
 *   MUT_NO_KICK       it asks for no turn afterwards
 */
#ifndef SENDERS
#define SENDERS 2
#endif
#ifndef KILL
#define KILL 1
#endif

#define GLEXD  SENDERS
#define NOBODY 255
#define SLOTS  6

/* A slot: free, claimed by n, published, discarded. */
#define FREE	   0
#define PUBLISHED  100
#define DISCARDED  101
#define CLAIMED(n) (1 + (n))

byte d[SLOTS], d_tail;	   /* control packets */
byte out[SLOTS], out_tail; /* what the requests sent */
byte packet[SLOTS];	   /* for which packet of d: what was filled in */
byte head;		   /* state: the next of d */
byte intent_id = NOBODY, intent_slot;
byte holder = NOBODY, asked;
bool killed[SENDERS], gone[SENDERS];
byte ended;

/* Request at head is sent: claims, fills, says so, publishes, goes on. */
inline execute(me)
{
	d_step {
		slot = out_tail;
		out[slot] = CLAIMED(me);
		out_tail++
	};
	packet[slot] = head;
#ifndef MUT_FILL_LATE
	d_step {
		intent_id = head;
		intent_slot = slot
	};
#endif
#ifdef MUT_COMMIT_FIRST
	head++;
	out[slot] = PUBLISHED
#else
	out[slot] = PUBLISHED;
#ifdef MUT_FILL_LATE
	d_step {
		intent_id = head;
		intent_slot = slot
	};
#endif
	head++
#endif
}

/* emu_coll_turn() */
inline turn(me)
{
	/* ask() */
	atomic {
		mine = holder == NOBODY;
		if
		:: mine ->
			holder = me;
			asked = 1
		:: else -> asked++
		fi
	};
	do
	:: !mine -> break
	:: else ->
		seen = asked;
		do
		:: d[head] == PUBLISHED -> execute(me)
		:: d[head] == DISCARDED -> head++
		:: else -> break
		od;
		/* give_back() */
		atomic {
#ifndef MUT_NO_RECHECK
			if
			:: seen == asked ->
#endif
				holder = NOBODY;
				asked = 0;
				mine = false
#ifndef MUT_NO_RECHECK
			:: else -> skip
			fi
#endif
		}
	od;
	seen = 0
}

inline claim_d(me)
{
	d_step {
		at = d_tail;
		d[at] = CLAIMED(me);
		d_tail++
	}
}

proctype sender(byte me)
{
	byte at, slot, seen;
	bool mine;

	{
		claim_d(me);
#ifdef MUT_ASK_FIRST
		turn(me);
		d[at] = PUBLISHED;
#else
		d[at] = PUBLISHED;
		turn(me);
#endif
	} unless { killed[me] };
	gone[me] = true;
	ended++
}

inline reap()
{
	i = 0;
	do
	:: i < SLOTS ->
		if
		:: d[i] == CLAIMED(0) -> d[i] = DISCARDED
		:: else -> skip
		fi;
		if
		:: out[i] == CLAIMED(0) -> out[i] = DISCARDED
		:: else -> skip
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

inline inherit()
{
	if
	:: holder == 0 ->
		if
		:: intent_id == head ->
			if
			:: out[intent_slot] == CLAIMED(0) -> out[intent_slot] = PUBLISHED
			:: else -> skip
			fi;
			head++
		:: else -> skip
		fi;
		d_step {
			holder = NOBODY;
			asked = 0
		}
	:: else -> skip
	fi
}

active proctype glexd()
{
	byte slot, seen, i;
	bool mine;

	if
	:: KILL ->
		killed[0] = true;
		gone[0]; /* the kernel tells */
#ifdef MUT_REAP_FIRST
		reap();
		inherit();
#else
#ifndef MUT_NO_INHERIT
		inherit();
#endif
		reap();
#endif
#ifndef MUT_NO_KICK
		turn(GLEXD)
#endif
	:: skip
	fi;
	ended++
}

/* What has been published in d is in out, once each and in order. */
active proctype check()
{
	byte i, o;

	ended == SENDERS + 1;
	assert(holder == NOBODY);
	atomic {
		do
		:: i == d_tail -> break
		:: i < d_tail && d[i] == DISCARDED -> i++
		:: i < d_tail && d[i] != DISCARDED ->
			do
			:: out[o] == DISCARDED -> o++
			:: else -> break
			od;
			assert(d[i] == PUBLISHED && out[o] == PUBLISHED && packet[o] == i);
			o++;
			i++
		od;
		do
		:: o < out_tail ->
			assert(out[o] == DISCARDED);
			o++
		:: else -> break
		od
	}
}

init
{
	atomic {
		byte n;

		do
		:: n < SENDERS ->
			run sender(n);
			n++
		:: else -> break
		od
	}
}
