/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mmt.pml - an entry of the memory table of emulator/nic/mmt.h and mmt.c: two
 * sessions that register and revoke in it, a reader, glexd that takes back what
 * an endpoint or a dead session left, and a session killed at any instruction.
 *
 * The table has one entry, so that everybody meets in it.  Each shared access of
 * the C code is one step; a generation stands for the handle; of the fields
 * there are two, `a` and `b`, that must be of one generation, and the endpoint.
 *
 *   thread    of session 1, on endpoint 0: registers, perhaps revokes
 *   SIBLING   another thread of it does so on endpoint 1
 *   OTHER     session 2 does so
 *   RIVAL     a thread of session 1 revokes a handle of the first one too
 *   BETTER    a thread of session 1 makes a region of the first one reached as an
 *             object (emu_mmt_map); it takes turns with who revokes by a lock
 *   READER    looks a handle up, also one that nobody has yet
 *   CLOSE     glexd takes back endpoint 0 of session 1 at any time
 *   KILL      session 1 may be killed at any instruction
 *   glexd     takes back what is left of session 1 once it has ended or was killed
 *
 * Checked: a lookup that succeeds gives the fields of that generation, whole, and
 * of a region that had not been revoked before the lookup began; one that is said to
 * be an object is said to be that of its generation; a registration is
 * freed once, and nobody frees the next tenant; of two that revoke one wins;
 * nothing of a dead session stays.
 * Memory order: steps happen in program order.  Each field is stored with
 * release (MMT-R2), so a reader that sees a later field also sees valid changed.
 * Not covered: 2^32 registrations during one lookup.
 *
 * Mutations, each of which must be found:
 *   MUT_VALID_FIRST    valid before the fields
 *   MUT_CHECK_ONCE     the reader does not look at valid again
 *   MUT_PLAIN_REVOKE   ending a generation is a plain store
 *   MUT_FREE_FIRST     the entry is given free before its generation has ended
 *   MUT_SAME_AGAIN     an entry's next tenant has the same generation
 *   MUT_BLIND_RECLAIM  glexd does not ask whether an endpoint's entry is valid
 *   MUT_NO_RECLAIM     glexd leaves what the dead had
 *   MUT_WAY_FIRST      a region is said to be an object before it is said which
 *   MUT_MAP_FIRST      the reader looks which object it is before whether it is one
 *   MUT_NO_TURNS       a region that gets another way may be revoked meanwhile
 */
#ifndef EACH
#define EACH 1 /* registrations of each thread */
#endif
#define GENERATIONS (3 * EACH + 2)
#ifdef SIBLING
#define SIBLINGS 1
#else
#define SIBLINGS 0
#endif
#ifdef RIVAL
#define RIVALS 1
#else
#define RIVALS 0
#endif
#ifdef BETTER
#define BETTERS 1
#else
#define BETTERS 0
#endif
#define MINE (1 + SIBLINGS + RIVALS + BETTERS)

byte stamp_generation, stamp_session; /* one word */
byte valid, a, b, ep_num;
#ifdef BETTER
byte map;  /* of which generation the object is */
byte way;  /* twice the generation; and 1: it is an object */
bool lock; /* of session 1 */
#endif

bool killed;
byte gone; /* threads of session 1 that have ended */

/* what only the checks look at */
byte owner[GENERATIONS], endpoint[GENERATIONS];
bool over[GENERATIONS];	 /* it was revoked: no lookup from now on may succeed */
byte freed[GENERATIONS];
byte handle0; /* the last of thread 0 */

#ifdef MUT_SAME_AGAIN
#define AFTER(gen) ((gen) == 0 -> 1 : (gen))
#else
#define AFTER(gen) ((gen) + 1)
#endif

/* emu_mmt_register(); won stays false if the table is full. */
inline register(session, ep)
{
	d_step {
		g = stamp_generation;
		s = stamp_session
	};
	d_step {
		won = s == 0 && stamp_session == 0 && stamp_generation == g;
		if
		:: won ->
			g = AFTER(g);
			stamp_generation = g;
			stamp_session = session;
			owner[g] = session;
			endpoint[g] = ep;
			freed[g] = 0
		:: else -> g = 0
		fi;
		s = 0
	};
	if
	:: won ->
#ifdef MUT_VALID_FIRST
		valid = g;
#endif
		a = g;
#ifdef BETTER
		map = 0;
		way = 2 * g;
#endif
		b = g;
		ep_num = ep;
		valid = g
	:: else -> skip
	fi
}

/* Who revokes takes turns with who gives a region another way. */
inline take_turn(session)
{
#ifdef BETTER
	atomic {
		session != 1 || !lock || killed;
		lock = lock || session == 1
	}
#else
	skip
#endif
}

inline end_turn(session)
{
#ifdef BETTER
	lock = lock && session != 1
#else
	skip
#endif
}

/* emu_mmt_find(); found, and what it says. */
inline find(gen)
{
	was_over = over[gen];
	found = valid == gen;
	if
	:: found ->
		x = a;
#ifdef BETTER
#ifdef MUT_MAP_FIRST
		m = map;
		w = way;
#else
		w = way;
		m = map;
#endif
#endif
		y = b;
		e = ep_num;
		s = stamp_session;
#ifndef MUT_CHECK_ONCE
		found = valid == gen
#endif
	:: else -> skip
	fi;
	d_step {
		assert(!found || (x == gen && y == gen && e == endpoint[gen] && !was_over));
#ifdef BETTER
		assert(!found || (w / 2 == gen && (w % 2 == 0 || m == gen)));
		w = 0;
		m = 0;
#endif
		x = 0;
		y = 0;
		was_over = false
	}
}

inline free_entry(gen, session)
{
	d_step {
		assert(stamp_generation == gen && stamp_session == session);
		freed[gen]++;
		assert(freed[gen] == 1);
		stamp_session = 0
	}
}

inline invalidate(gen)
{
#ifdef MUT_PLAIN_REVOKE
	won = valid == gen;
	d_step {
		valid = 0;
		over[gen] = true
	}
#else
	d_step {
		won = valid == gen;
		if
		:: won ->
			valid = 0;
			over[gen] = true
		:: else -> skip
		fi
	}
#endif
}

inline revoke(gen, session, ep)
{
	take_turn(session);
	find(gen);
	if
	:: found && s == session && e == ep ->
#ifdef MUT_FREE_FIRST
		free_entry(gen, session);
		invalidate(gen)
#else
		invalidate(gen);
		if
		:: won -> free_entry(gen, session)
		:: else -> skip
		fi
#endif
	:: else -> skip
	fi;
	end_turn(session)
}

/* emu_mmt_map() of what emu_mmt_at() gave. */
#ifdef BETTER
proctype better()
{
	byte g, x, y, e, s, w, m;
	bool found, was_over;

	{
		if
		:: handle0 != 0 ->
			g = handle0;
#ifndef MUT_NO_TURNS
			take_turn(1);
#endif
			find(g);
			if
			:: found ->
#ifdef MUT_WAY_FIRST
				way = 2 * g + 1;
				map = g;
#else
				map = g;
				way = 2 * g + 1;
#endif
			:: else -> skip
			fi;
#ifndef MUT_NO_TURNS
			end_turn(1)
#endif
		:: skip
		fi
	} unless { killed };
	gone++
}
#endif

proctype thread(byte session; byte ep)
{
	byte g, x, y, e, s, n;
	byte w, m;
	bool won, found, was_over;

	{
		do
		:: n < EACH ->
			register(session, ep);
			if
			:: won && ep == 0 && session == 1 -> handle0 = g
			:: else -> skip
			fi;
			if
			:: won -> revoke(g, session, ep)
			:: skip /* glexd will */
			fi;
			atomic {
				n++;
				g = 0;
				e = 0;
				s = 0;
				won = false;
				found = false
			}
		:: n == EACH -> break
		od
	} unless { killed && session == 1 };
	if
	:: session == 1 -> gone++
	:: else -> skip
	fi
}

proctype rival()
{
	byte g, x, y, e, s, w, m;
	bool won, found, was_over;

	{
		if
		:: handle0 != 0 ->
			g = handle0;
			revoke(g, 1, 0)
		:: skip
		fi
	} unless { killed };
	gone++
}

proctype reader()
{
	byte g, x, y, e, s, w, m;
	bool found, was_over;

	do
	:: g < GENERATIONS - 1 -> g++
	:: g > 0 ->
		find(g);
		break
	:: break
	od
}

/* emu_mmt_reclaim() of endpoint 0, then of the session. */
proctype glexd()
{
	byte g, s, e;
	bool won;

#ifdef KILL
	/* A SIGKILL, at any time or never. */
	if
	:: killed = true
	:: skip
	fi;
#endif
#ifdef CLOSE
	take_turn(1);
	d_step {
		g = stamp_generation;
		s = stamp_session
	};
	if
	:: s == 1 ->
#ifndef MUT_BLIND_RECLAIM
		won = valid == g;
#else
		won = true;
#endif
		e = ep_num;
		if
		:: won && e == 0 ->
#ifdef MUT_BLIND_RECLAIM
			valid = 0;
			won = true;
#else
			invalidate(g);
#endif
			if
			:: won -> free_entry(g, 1)
			:: else -> skip
			fi
		:: else -> skip
		fi
	:: else -> skip
	fi;
	end_turn(1);
#endif
	gone == MINE;
#ifndef MUT_NO_RECLAIM
	d_step {
		g = stamp_generation;
		s = stamp_session
	};
	if
	:: s == 1 ->
		d_step {
			valid = 0;
			over[g] = true
		};
		free_entry(g, 1)
	:: else -> skip
	fi;
#endif
	assert(stamp_session != 1)
}

init
{
	atomic {
		run thread(1, 0);
#ifdef SIBLING
		run thread(1, 1);
#endif
#ifdef OTHER
		run thread(2, 0);
#endif
#ifdef RIVAL
		run rival();
#endif
#ifdef BETTER
		run better();
#endif
#ifdef READER
		run reader();
#endif
		run glexd()
	}
}
