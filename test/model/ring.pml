/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.pml - the queue of emulator/nic/ring.h and ring.c: producers of several
 * sessions, one consumer, a session killed at any instruction, the reaper.
 *
 * Every shared access of the C code is one step here, in the same order; the
 * names are the same too.  What is a single word there (tail, a log entry) is
 * two bytes read and written in one step.  Indices run over WHEEL, as they do
 * over 2^32 there; no run makes so many claims that one comes back.
 *
 *   S0 S1 S2   session of each producer: equal ones are threads of a process
 *   M0 M1 M2   how many messages each sends; CAP, FIRST: ring, first index
 *   KILL       the session that may be killed
 *
 * Checked: a message is read whole, once, and in its producer's order; what was
 * published is delivered even if its producer then dies; only slots that a dead
 * session claimed and left are discarded, and all of them; nobody gets stuck (a
 * producer that finds the ring full waits for the consumer, so an end without
 * everybody's consent is a deadlock).
 *
 * Memory order: steps happen in program order.  Of the reorderings that the
 * labels of ring.h forbid, those of RING-R1, R4 and R5 are mutations below;
 * that the compiler and the processor honour the labels is for the stress
 * tests under the thread sanitizer.
 * Not covered: a lap of 2^32 claims while a producer sleeps; more than one reap
 * at a time (glexd has one thread for it).
 *
 * Mutations, each of which must be found:
 *   MUT_PUBLISH_FIRST  seq before the body
 *   MUT_NO_LOG         a claim behind another session writes no log entry
 *   MUT_LOG_LATE       it writes it after its claim
 *   MUT_REAP_ONCE      the reaper does not look again after it has read the log
 *   MUT_NO_REAP        nobody discards what the dead left
 *   MUT_NO_ROOM        a claim does not look for room
 *   MUT_RELEASE_FIRST  the consumer gives the slot back before it has read it
 */
#ifndef CAP
#define CAP 2
#endif
#ifndef FIRST
#define FIRST 6
#endif
#ifndef S0
#define S0 1
#define S1 1
#define S2 2
#endif
#ifndef M0
#define M0 1
#define M1 1
#define M2 2
#endif
#ifndef KILL
#define KILL 1
#endif

#define PRODUCERS 3
#define SESSIONS 4
#define NONE 0
#define WHEEL 16
#define MASK (CAP - 1)
#define SLOT(n) ((n) % CAP)
#define DIFF(a, b) (((a) - (b) + WHEEL) % WHEEL) /* as uint32_t */
#define BEFORE(a, b) (DIFF(a, b) >= WHEEL / 2)   /* as int32_t, below 0 */
#define NEXT(n) (((n) + 1) % WHEEL)

/* shared memory */
byte tail_session, tail, head, head_seen;
byte log_index[CAP], log_session[CAP];
byte seq[CAP];
byte body_a[CAP], body_b[CAP]; /* the two halves of a message must match */
bool discarded[CAP];

/* what the operating system knows */
bool killed[SESSIONS];
byte gone[SESSIONS]; /* producers of the session that have ended */

/* what only the checks look at */
byte claimer[WHEEL];
byte published[PRODUCERS], delivered[PRODUCERS];
byte left[SESSIONS]; /* claimed and not published */
byte ended;
bool reaped;

#define MESSAGE(who, n) ((who)*8 + (n) + 1)

/* The compare-and-swap of the tail, if it is tried at all; won tells. */
inline claim_tail(s, n, tried)
{
	d_step {
		won = false;
		if
		:: tried && tail_session == s && tail == n ->
			won = true;
			tail_session = session;
			tail = NEXT(n);
			claimer[n] = session;
			left[session]++
		:: else -> skip
		fi
	}
}

/* has_room() of ring.c; h is what the consumer's word said when it says no. */
inline has_room(n)
{
	d_step {
		h = head_seen;
		room = DIFF(n, h) <= MASK
	};
	if
	:: room
	:: d_step { !room -> h = head };
		d_step {
			head_seen = h;
			room = BEFORE(n, h) || DIFF(n, h) <= MASK
		}
	fi
#ifdef MUT_NO_ROOM
	;
	room = true
#endif
}

inline load_entry()
{
	old_index = log_index[e];
	old_session = log_session[e];
	entered = old_index == DIFF(index, 1) && old_session == last
}

/* log_claim(): entered stays false if the tail has moved on. */
inline log_claim()
{
	d_step {
		e = SLOT(DIFF(index, 1));
		load_entry();
		moved = false
	};
	do
	:: entered || moved -> break
	:: else ->
		d_step { moved = tail_session != last || tail != index };
		d_step {
			if
			:: moved -> skip
			:: !moved && log_index[e] == old_index && log_session[e] == old_session ->
				log_index[e] = DIFF(index, 1);
				log_session[e] = last;
				entered = true
			:: else -> load_entry()
			fi
		}
	od;
	atomic {
		e = 0;
		old_index = 0;
		old_session = 0;
		moved = false
	}
}

inline claim_contended()
{
	d_step {
		last = tail_session;
		index = tail
	};
	do
	:: won -> break
	:: else ->
		has_room(index);
#if defined(MUT_NO_LOG) || defined(MUT_LOG_LATE)
		entered = room;
#else
		entered = room && (last == session || last == NONE);
		if
		:: room && !entered -> log_claim()
		:: else -> skip
		fi;
#endif
		if
		:: d_step { entered -> entered = false; h = 0 };
#ifdef MUT_LOG_LATE
			e = last;
#endif
			claim_tail(last, index, true);
			if
			:: d_step { !won -> last = tail_session; index = tail }
			:: won ->
#ifdef MUT_LOG_LATE
				d_step {
					if
					:: e != session && e != NONE ->
						log_index[SLOT(DIFF(index, 1))] = DIFF(index, 1);
						log_session[SLOT(DIFF(index, 1))] = e
					:: else -> skip
					fi
				};
#endif
				skip
			fi
		:: !entered && room ->
			d_step {
				last = tail_session;
				index = tail
			}
		:: !entered && !room ->
			if
			:: d_step { tail_session != last || tail != index -> last = tail_session; index = tail }
			:: d_step { tail_session == last && tail == index -> skip };
				head != h /* full: the caller comes back when something has changed */
			fi
		fi
	od
}

/* What the caller knows of the tail is last and index. */
inline claim()
{
	d_step {
		h = head_seen;
		room = last == session && DIFF(index, h) <= MASK;
		h = 0
	};
	claim_tail(last, index, room);
	if
	:: won -> skip
	:: else -> claim_contended()
	fi
}

inline publish()
{
	d_step {
		seq[SLOT(index)] = NEXT(index);
		n++;
		published[who]++;
		left[session]--
	}
}

proctype producer(byte who; byte session; byte messages)
{
	byte last, index, h, e, old_index, old_session, n;
	bool won, room, entered, moved;

	{
		do
		:: d_step {
			n < messages -> last = tail_session;
			index = tail
		};
			claim();
#ifdef MUT_PUBLISH_FIRST
			publish();
			n--;
#endif
			atomic {
				last = 0;
				h = 0;
				room = false;
				won = false;
				body_a[SLOT(index)] = MESSAGE(who, n);
				discarded[SLOT(index)] = false
			};
			body_b[SLOT(index)] = MESSAGE(who, n);
#ifdef MUT_PUBLISH_FIRST
			n++
#else
			publish()
#endif
		:: n == messages -> break
		od
	} unless { killed[session] };
	atomic {
		gone[session]++;
		ended++
	}
}

/* A SIGKILL, at any time or never. */
proctype killer()
{
	if
	:: killed[KILL] = true
	:: skip
	fi
}

inline unpublished(n)
{
	is_unpublished = seq[SLOT(n)] == DIFF(n, MASK) || (seq[SLOT(n)] == 0 && n <= MASK)
}

inline owner_of(n)
{
	m = n;
	owner = NONE;
	do
	:: owner != NONE -> break
	:: owner == NONE && m == end ->
		owner = end_session;
		break
	:: owner == NONE && m != end ->
		d_step {
			if
			:: log_index[SLOT(m)] == m -> owner = log_session[SLOT(m)]
			:: else -> skip
			fi;
			m = NEXT(m)
		}
	od
}

/* glexd, once the socket has told that all threads of the session are gone. */
proctype reaper()
{
	byte end_session, end, index, m, owner;
	bool is_unpublished;

	gone[KILL] == (S0 == KILL) + (S1 == KILL) + (S2 == KILL);
#ifndef MUT_NO_REAP
	d_step {
		end_session = tail_session;
		end = tail
	};
	index = head;
	do
	:: BEFORE(index, end) ->
		unpublished(index);
		if
		:: is_unpublished -> owner_of(index)
		:: else -> skip
		fi;
#ifndef MUT_REAP_ONCE
		unpublished(index);
#endif
		if
		:: is_unpublished && owner == KILL ->
			assert(claimer[index] == KILL && killed[KILL]);
			discarded[SLOT(index)] = true;
			d_step {
				seq[SLOT(index)] = NEXT(index);
				left[KILL]--
			}
		:: else -> skip
		fi;
		d_step {
			owner = NONE;
			m = 0;
			index = NEXT(index)
		}
	:: else -> break
	od;
#endif
	assert(left[KILL] == 0);
	reaped = true
}

proctype consumer()
{
	byte index = FIRST, a, who;

	do
	:: seq[SLOT(index)] == NEXT(index) ->
#ifdef MUT_RELEASE_FIRST
		head = NEXT(index);
#endif
		if
		:: discarded[SLOT(index)] -> assert(claimer[index] == KILL && killed[KILL])
		:: else ->
			a = body_a[SLOT(index)];
			d_step {
				assert(a != 0 && a == body_b[SLOT(index)]);
				who = (a - 1) / 8;
				assert(a == MESSAGE(who, delivered[who]));
				delivered[who]++;
				a = 0;
				who = 0
			}
		fi;
		index = NEXT(index);
#ifndef MUT_RELEASE_FIRST
		head = index
#endif
	:: ended == PRODUCERS && reaped && index == tail -> break
	od;
	assert(delivered[0] == published[0] && delivered[1] == published[1] && delivered[2] == published[2]);
	assert(killed[KILL] || (published[0] == M0 && published[1] == M1 && published[2] == M2))
}

init
{
	byte i;

	d_step {
		tail_session = NONE;
		tail = FIRST;
		head = FIRST;
		head_seen = FIRST;
		do
		:: i < CAP ->
#if FIRST
			/* as the lap before would have left it */
			seq[SLOT(FIRST + i)] = DIFF(FIRST + i, MASK);
#endif
			i++
		:: else -> break
		od
	};
	atomic {
		run producer(0, S0, M0);
		run producer(1, S1, M1);
		run producer(2, S2, M2);
		run consumer();
		run killer();
		run reaper()
	}
}
